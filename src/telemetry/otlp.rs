//! Traces and log lines for an OpenTelemetry collector, by OTLP over HTTP. The environment
//! variables of OpenTelemetry's specification configure them; each is off unless they name a
//! collector for it.

use std::env;

use opentelemetry::KeyValue;
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_otlp::{ExporterBuildError, LogExporter, SpanExporter};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::{SdkLogger, SdkLoggerProvider};
use opentelemetry_sdk::trace::SdkTracerProvider;

/// The environment names a collector in a form that does not work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "what is sent by OTLP cannot be configured: {0}; correct or remove the OTEL_EXPORTER_OTLP_ variables"
    )]
    Exporter(#[from] ExporterBuildError),
    #[error(
        "{variable} names a protocol that the service does not have; remove the variable: the protocol is `http/protobuf`, for which collectors listen on port 4318"
    )]
    Protocol { variable: String },
}

/// The tracer provider. Clones share it.
#[derive(Debug, Clone)]
pub struct Traces(pub SdkTracerProvider);

impl Traces {
    /// Sets up the tracer provider, or returns `None` if the environment names no collector.
    pub fn open() -> Result<Option<Self>, Error> {
        if !is_wanted("TRACES")? {
            return Ok(None);
        }
        let exporter = SpanExporter::builder().with_http().build()?;
        let provider = SdkTracerProvider::builder().with_resource(resource());
        Ok(Some(Self(provider.with_batch_exporter(exporter).build())))
    }

    /// Sends the remaining spans. Blocks for a few seconds if the collector does not answer.
    pub fn close(&self) {
        if let Err(error) = self.0.shutdown() {
            tracing::warn!(%error, "the last traces were not sent");
        }
    }
}

/// The logger provider.
#[derive(Debug)]
pub(super) struct Logs(SdkLoggerProvider);

impl Logs {
    /// Sets up the logger provider, or returns `None` if the environment names no collector.
    pub(super) fn open() -> Result<Option<Self>, Error> {
        if !is_wanted("LOGS")? {
            return Ok(None);
        }
        let exporter = LogExporter::builder().with_http().build()?;
        let provider = SdkLoggerProvider::builder().with_resource(resource());
        Ok(Some(Self(provider.with_batch_exporter(exporter).build())))
    }

    /// Returns the layer that sends lines.
    pub(super) fn layer(&self) -> OpenTelemetryTracingBridge<SdkLoggerProvider, SdkLogger> {
        OpenTelemetryTracingBridge::new(&self.0)
    }
}

/// Sends the remaining lines. Blocks for a few seconds if the collector does not answer.
impl Drop for Logs {
    fn drop(&mut self) {
        if let Err(error) = self.0.shutdown() {
            tracing::warn!(%error, "the last log lines were not sent");
        }
    }
}

/// Returns `true` if the variables of OpenTelemetry name a collector for a signal and do not
/// disable it.
fn is_wanted(signal: &str) -> Result<bool, Error> {
    let of_signal = |setting: &str| format!("OTEL_EXPORTER_OTLP_{signal}_{setting}");
    let says = |variable: &str, word: &str| {
        set(variable).is_some_and(|value| value.eq_ignore_ascii_case(word))
    };
    let named = is_set("OTEL_EXPORTER_OTLP_ENDPOINT") || is_set(&of_signal("ENDPOINT"));
    if !named
        || says("OTEL_SDK_DISABLED", "true")
        || says(&format!("OTEL_{signal}_EXPORTER"), "none")
    {
        return Ok(false);
    }
    let protocol = [
        of_signal("PROTOCOL"),
        "OTEL_EXPORTER_OTLP_PROTOCOL".to_owned(),
    ];
    // The exporter would warn, and use the protocol that it has.
    match protocol.into_iter().find(|variable| is_set(variable)) {
        Some(variable) if !says(&variable, "http/protobuf") => Err(Error::Protocol { variable }),
        _ => Ok(true),
    }
}

fn is_set(variable: &str) -> bool {
    set(variable).is_some()
}

fn set(variable: &str) -> Option<String> {
    env::var(variable)
        .ok()
        .map(|value| value.trim().to_owned())
        .filter(|value| !value.is_empty())
}

fn resource() -> Resource {
    let resource = Resource::builder()
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    if is_set("OTEL_SERVICE_NAME") {
        return resource.build();
    }
    resource.with_service_name(env!("CARGO_PKG_NAME")).build()
}
