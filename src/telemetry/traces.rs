//! Traces for an OpenTelemetry collector, by OTLP over HTTP. The environment variables of OpenTelemetry's specification
//! configure them; they are off if these name no collector.

use opentelemetry::KeyValue;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;

/// The tracer provider. Clones share it.
#[derive(Debug, Clone)]
pub struct Traces(pub SdkTracerProvider);

impl Traces {
    /// Sets up the tracer provider, or returns `None` if the environment names no collector.
    ///
    /// # Errors
    /// The environment names a collector in an invalid form.
    pub fn open() -> Result<Option<Self>, ExporterBuildError> {
        if !super::wants_traces() {
            return Ok(None);
        }
        let exporter = SpanExporter::builder().with_http().build()?;
        let mut resource =
            Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
        if !super::is_set("OTEL_SERVICE_NAME") {
            resource = resource.with_service_name(env!("CARGO_PKG_NAME"));
        }
        let provider = SdkTracerProvider::builder().with_resource(resource.build());
        Ok(Some(Self(provider.with_batch_exporter(exporter).build())))
    }

    /// Sends the remaining spans. Blocks for a few seconds if the collector does not answer.
    pub fn close(&self) {
        if let Err(error) = self.0.shutdown() {
            tracing::warn!(%error, "the last traces were not sent");
        }
    }
}
