//! The service's own side: every preset against a provider that answers as the real one is
//! documented to, and otherwise. Time is a parameter; tokens are signed for real.

mod both;
mod claims;
mod discovery;
mod endpoints;
mod house;
mod introspection;
mod key_set;
mod oracle;
mod presets;
mod pressure;
mod properties;
mod quirks;
mod settings;
mod signatures;
