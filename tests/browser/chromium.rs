//! Chromium, driven by its own driver over the `WebDriver` protocol. Both end with this process,
//! however it ends: the driver's keeper waits for the pipe to this process to break, and Chromium
//! for the pipe to the driver.

use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::browser::webdriver::Client;
use crate::programs::{one_of, program, version};

/// Runs the driver until its own standard input ends. It deletes the folder of Chromium's data
/// after the end of the last process that inherited the driver's standard output. It ignores
/// interrupts: a terminal sends them to it as well as to the tests, and it must not end before
/// them.
const KEEPER: &str = r#"
trap '' HUP INT QUIT
folder=$(mktemp -d) || exit
{
    HOME=$folder TMPDIR=$folder "$0" --port=0 --log-level=SEVERE &
    while read -r _; do :; done
    kill $!
} | cat
rm -rf "$folder"
"#;

const ARGUMENTS: [&str; 13] = [
    "--headless=new",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--hide-scrollbars",
    "--no-first-run",
    "--no-proxy-server",
    "--no-sandbox",
    "--remote-debugging-pipe",
];

/// Longest wait for an element, for instance on the next page, in milliseconds.
const TIMEOUT: u32 = 20_000;

/// The driver of all tests.
struct Driver {
    url: String,
    chromium: PathBuf,
    /// The driver runs until the keeper's standard input ends.
    _keeper: Child,
    /// Kept open, so that writers do not get a broken pipe.
    _said: Lines<BufReader<ChildStdout>>,
}

fn driver() -> Option<&'static Driver> {
    static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
    DRIVER.get_or_init(start).as_ref()
}

fn start() -> Option<Driver> {
    let chromium = one_of(&["chromium", "chromium-browser", "google-chrome"], (120, 0))?;
    let (major, _) = version(&chromium)?;
    // A driver refuses a browser of another version.
    let driver = program("chromedriver", (major, 0))?;
    let mut keeper = Command::new("sh")
        .args(["-c", KEEPER])
        .arg(driver)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("there is a shell");
    let mut said = BufReader::new(keeper.stdout.take().unwrap()).lines();
    // The driver chooses a free port and prints it.
    let started = |line: &String| line.contains("started successfully");
    let line = said
        .by_ref()
        .map(Result::unwrap)
        .find(started)
        .expect("chromedriver starts");
    let port = line.trim_end_matches('.').rsplit(' ').next().unwrap();
    Some(Driver {
        url: format!("http://127.0.0.1:{port}"),
        chromium,
        _keeper: keeper,
        _said: said,
    })
}

/// Scripts on pages: allowed or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scripts {
    On,
    Off,
}

/// A window with a profile of its own.
pub struct Window {
    pub client: Client,
}

impl Window {
    /// Opens a window, if Chromium is installed.
    pub async fn open(scripts: Scripts) -> Option<Self> {
        let running = driver()?;
        let mut options = json!({ "binary": running.chromium, "args": ARGUMENTS });
        if scripts == Scripts::Off {
            options["prefs"] = json!({ "profile.managed_default_content_settings.javascript": 2 });
        }
        let capabilities = json!({
            "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": { "browser": "ALL" },
            "timeouts": { "implicit": TIMEOUT, "script": 120_000 },
        });
        Some(Self {
            client: Client::begin(&running.url, capabilities)
                .await
                .expect("Chromium starts"),
        })
    }

    /// Speaks to Chromium in its own protocol.
    pub async fn devtools(&self, method: &str, parameters: Value) -> Value {
        let command = json!({ "cmd": method, "params": parameters });
        self.client
            .post("/goog/cdp/execute", command)
            .await
            .unwrap()
    }

    /// Chromium's complaints since the previous call.
    pub async fn complaints(&self) -> Vec<String> {
        let log = self
            .client
            .post("/se/log", json!({ "type": "browser" }))
            .await
            .unwrap();
        log.as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["message"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Makes the screen that wide.
    pub async fn resize(&self, width: u32) {
        let height = if width < 500 { 844 } else { 900 };
        let screen =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", screen)
            .await;
    }

    /// Sets the preferred colour scheme: `light` or `dark`.
    pub async fn prefer(&self, scheme: &str) {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.devtools("Emulation.setEmulatedMedia", features).await;
    }

    /// Saves a picture of the whole page, including the parts outside the window.
    pub async fn photograph(&self, file: &Path) {
        let metrics = self.devtools("Page.getLayoutMetrics", json!({})).await;
        let size = &metrics["cssContentSize"];
        let clip =
            json!({ "x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1 });
        let what = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let picture = self.devtools("Page.captureScreenshot", what).await;
        let picture = STANDARD.decode(picture["data"].as_str().unwrap()).unwrap();
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, picture).unwrap();
    }

    /// A value that a script in the page returns.
    pub async fn evaluate(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.unwrap()
    }

    pub async fn close(self) {
        self.client.close().await.unwrap();
    }
}
