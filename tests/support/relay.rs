//! Connections to the tests' PostgreSQL on which a test counts, breaks or delays messages.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use figment::Figment;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::unix::OwnedReadHalf;
use tokio::net::{UnixListener, UnixStream};
use uuid::Uuid;

use super::cluster::{Database, cluster};

/// A path to PostgreSQL's socket that a test can cut: a symbolic link.
pub struct SocketLink {
    target: PathBuf,
    /// The link, which is absent while the path is cut.
    pub path: PathBuf,
    pub url: String,
}

impl SocketLink {
    /// A path to that database, cut for now.
    pub async fn cut_to(database: &Database) -> Self {
        let target = cluster().await.socket_dir().to_owned();
        let path = std::env::temp_dir().join(format!("vestibule-{}", Uuid::now_v7().simple()));
        let encoded = |path: &Path| path.to_str().unwrap().replace('/', "%2F");
        let url = database.url.replace(&encoded(&target), &encoded(&path));
        assert_ne!(url, database.url);
        Self { target, path, url }
    }

    /// Creates the link to the server.
    pub fn mend(&self) {
        symlink(&self.target, &self.path).unwrap();
    }
}

impl Drop for SocketLink {
    fn drop(&mut self) {
        // It may be cut.
        let _ = fs::remove_file(&self.path);
    }
}

/// The folder of a socket that leads to the tests' PostgreSQL, deleted with this value.
pub struct Relay(PathBuf);

impl Relay {
    /// Runs `relay` for each connection, with its ends at the service and at the server.
    pub async fn open<F>(relay: impl Fn(UnixStream, UnixStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let directory = std::env::temp_dir().join(format!("vestibule-{}", Uuid::now_v7().simple()));
        fs::create_dir(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
        let server = cluster().await.socket_dir().join(".s.PGSQL.5432");
        let listener = UnixListener::bind(directory.join(".s.PGSQL.5432")).unwrap();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = UnixStream::connect(&server).await.unwrap();
                tokio::spawn(relay(client, server));
            }
        });
        Self(directory)
    }

    /// Calls `pass` with each message of the service. Forwards the message if it returns `true`,
    /// and otherwise closes the connection.
    pub async fn watched(pass: impl Fn(&Message) -> bool + Send + Sync + 'static) -> Self {
        let pass = Arc::new(pass);
        Self::open(move |client, server| {
            let pass = pass.clone();
            async move {
                let (from_client, mut to_client) = client.into_split();
                let (mut from_server, mut to_server) = server.into_split();
                let answers =
                    tokio::spawn(async move { copy(&mut from_server, &mut to_client).await });
                let mut messages = Messages::of(from_client);
                while let Some(message) = messages.next().await {
                    if !pass(&message) || to_server.write_all(&message.bytes).await.is_err() {
                        answers.abort();
                        break;
                    }
                }
            }
        })
        .await
    }

    /// Settings with the same database, through the relay.
    pub fn behind(&self, figment: Figment) -> Figment {
        let url: String = figment.extract_inner("databases.vestibule.url").unwrap();
        let database = url
            .rsplit('/')
            .next()
            .and_then(|rest| rest.split('?').next())
            .unwrap();
        let folder = self.0.display();
        let url =
            format!("postgres://vestibule@localhost/{database}?host={folder}&sslmode=disable");
        figment.merge(("databases.vestibule.url", url))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// A message from the service to PostgreSQL (PostgreSQL, "Message Formats").
pub struct Message {
    /// Its type; zero for the startup message, which has none.
    pub kind: u8,
    /// The whole message, as it is forwarded.
    pub bytes: Vec<u8>,
    /// The length of the bytes before the contents.
    head: usize,
}

impl Message {
    /// The message without its type and length.
    pub fn contents(&self) -> &[u8] {
        &self.bytes[self.head..]
    }
}

pub struct Messages {
    client: OwnedReadHalf,
    begun: bool,
}

impl Messages {
    pub fn of(client: OwnedReadHalf) -> Self {
        Self {
            client,
            begun: false,
        }
    }

    /// The next message; `None` if the connection has ended.
    pub async fn next(&mut self) -> Option<Message> {
        let head = if self.begun { 5 } else { 4 };
        let mut bytes = vec![0; head];
        self.client.read_exact(&mut bytes).await.ok()?;
        let kind = if self.begun { bytes[0] } else { 0 };
        let length = u32::from_be_bytes(*bytes.last_chunk().unwrap()) as usize;
        bytes.resize(head + length - 4, 0);
        self.client.read_exact(&mut bytes[head..]).await.unwrap();
        self.begun = true;
        Some(Message { kind, bytes, head })
    }
}
