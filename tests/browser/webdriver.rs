//! A client for the parts of the `WebDriver` protocol (W3C) that these tests use. It is written by
//! hand: the libraries need twenty more crates, and more features of shared crates, so that half of
//! the program's crates would be built twice.

use reqwest::Method;
use serde_json::{Value, json};

/// The result of a command, or the driver's error message.
pub type Answer<T = Value> = Result<T, String>;

/// The key of an element's reference (§12).
const REFERENCE: &str = "element-6066-11e4-a52e-4f735466cecf";

/// One session of the driver.
pub struct Client {
    http: reqwest::Client,
    session: String,
}

impl Client {
    /// Begins a session at the driver of that URL.
    pub async fn begin(driver: &str, capabilities: Value) -> Answer<Self> {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut client = Self {
            http,
            session: format!("{driver}/session"),
        };
        let begun = client
            .post(
                "",
                json!({ "capabilities": { "alwaysMatch": capabilities } }),
            )
            .await?;
        client.session = format!("{driver}/session/{}", begun["sessionId"].as_str().unwrap());
        Ok(client)
    }

    async fn send(&self, method: Method, path: &str, body: String) -> Answer {
        let request = self
            .http
            .request(method, format!("{}{path}", self.session))
            .body(body);
        let answer = request.send().await.map_err(|error| format!("{error:?}"))?;
        let done = answer.status().is_success();
        let text = answer.text().await.map_err(|error| format!("{error:?}"))?;
        let mut answer: Value = serde_json::from_str(&text).map_err(|_| text)?;
        if done {
            Ok(answer["value"].take())
        } else {
            Err(answer["value"]["message"].as_str().unwrap().to_owned())
        }
    }

    async fn get(&self, path: &str) -> Answer<String> {
        let value = self.send(Method::GET, path, String::new()).await?;
        Ok(value.as_str().unwrap().to_owned())
    }

    /// Sends a command of the protocol or of Chromium.
    pub async fn post(&self, path: &str, parameters: Value) -> Answer {
        self.send(Method::POST, path, parameters.to_string()).await
    }

    pub async fn goto(&self, url: &str) -> Answer {
        self.post("/url", json!({ "url": url })).await
    }

    pub async fn back(&self) -> Answer {
        self.post("/back", json!({})).await
    }

    pub async fn refresh(&self) -> Answer {
        self.post("/refresh", json!({})).await
    }

    pub async fn title(&self) -> Answer<String> {
        self.get("/title").await
    }

    pub async fn delete_all_cookies(&self) -> Answer {
        self.send(Method::DELETE, "/cookie", String::new()).await
    }

    /// A cookie that the browser sends to the page's host.
    pub async fn cookie(&self, name: &str) -> Answer {
        self.send(Method::GET, &format!("/cookie/{name}"), String::new())
            .await
    }

    /// The current tab, to which commands apply.
    pub async fn tab(&self) -> Answer<String> {
        self.get("/window").await
    }

    /// Opens a tab, and returns it.
    pub async fn open_tab(&self) -> Answer<String> {
        let opened = self.post("/window/new", json!({ "type": "tab" })).await?;
        Ok(opened["handle"].as_str().unwrap().to_owned())
    }

    /// Makes that tab the current one.
    pub async fn turn_to(&self, tab: &str) -> Answer {
        self.post("/window", json!({ "handle": tab })).await
    }

    /// Runs a script, and returns its value.
    pub async fn execute(&self, script: &str, arguments: Vec<Value>) -> Answer {
        self.post(
            "/execute/sync",
            json!({ "script": script, "args": arguments }),
        )
        .await
    }

    /// Runs a script, and returns the value that it passes to the callback, its last argument.
    pub async fn execute_async(&self, script: &str, arguments: Vec<Value>) -> Answer {
        self.post(
            "/execute/async",
            json!({ "script": script, "args": arguments }),
        )
        .await
    }

    /// Presses a key and lets go of it.
    pub async fn strike(&self, key: char) -> Answer {
        let strokes = ["keyDown", "keyUp"].map(|stroke| json!({ "type": stroke, "value": key }));
        self.post(
            "/actions",
            json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": strokes }] }),
        )
        .await
    }

    /// Waits for the first element of that `XPath`.
    pub async fn find(&self, path: &str) -> Answer<Element<'_>> {
        let found = self
            .post("/element", json!({ "using": "xpath", "value": path }))
            .await?;
        Ok(Element {
            client: self,
            path: format!("/element/{}", found[REFERENCE].as_str().unwrap()),
        })
    }

    pub async fn close(self) -> Answer {
        self.send(Method::DELETE, "", String::new()).await
    }
}

/// An element of a page.
pub struct Element<'a> {
    client: &'a Client,
    path: String,
}

impl Element<'_> {
    pub async fn click(&self) -> Answer {
        self.client
            .post(&format!("{}/click", self.path), json!({}))
            .await
    }

    pub async fn clear(&self) -> Answer {
        self.client
            .post(&format!("{}/clear", self.path), json!({}))
            .await
    }

    pub async fn send_keys(&self, text: &str) -> Answer {
        self.client
            .post(&format!("{}/value", self.path), json!({ "text": text }))
            .await
    }

    pub async fn text(&self) -> Answer<String> {
        self.client.get(&format!("{}/text", self.path)).await
    }
}
