//! Traces and log lines for an OpenTelemetry collector, by OTLP over HTTP. The environment variables of OpenTelemetry's
//! specification configure them; each is off unless they name a collector for it.

use std::env;

use opentelemetry::KeyValue;
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_otlp::{ExporterBuildError, LogExporter, SpanExporter};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::{SdkLogger, SdkLoggerProvider};
use opentelemetry_sdk::trace::SdkTracerProvider;

/// The environment names a collector in an invalid form.
#[derive(Debug, thiserror::Error)]
#[error(
    "what is sent by OTLP cannot be configured: {0}; correct or remove the OTEL_EXPORTER_OTLP_ variables"
)]
pub struct Error(#[from] ExporterBuildError);

/// The tracer provider. Clones share it.
#[derive(Debug, Clone)]
pub struct Traces(pub SdkTracerProvider);

impl Traces {
    /// Sets up the tracer provider, or returns `None` if the environment names no collector.
    pub fn open() -> Result<Option<Self>, Error> {
        if !is_wanted("TRACES") {
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
        if !is_wanted("LOGS") {
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

/// Returns `true` if the variables of OpenTelemetry name a collector for a signal and do not disable it.
fn is_wanted(signal: &str) -> bool {
    let says = |variable: &str, word: &str| {
        env::var(variable).is_ok_and(|value| value.trim().eq_ignore_ascii_case(word))
    };
    let named =
        is_set("OTEL_EXPORTER_OTLP_ENDPOINT") || is_set(&format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"));
    named && !says("OTEL_SDK_DISABLED", "true") && !says(&format!("OTEL_{signal}_EXPORTER"), "none")
}

fn is_set(variable: &str) -> bool {
    env::var(variable).is_ok_and(|value| !value.trim().is_empty())
}

fn resource() -> Resource {
    let resource =
        Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    if is_set("OTEL_SERVICE_NAME") {
        return resource.build();
    }
    resource.with_service_name(env!("CARGO_PKG_NAME")).build()
}
