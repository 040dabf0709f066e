//! Every preset against a provider that responds as the real one documents, and against others.
//! Time is a parameter; tokens have real signatures.

mod both;
mod claims;
mod discovery;
mod endpoints;
mod introspection;
mod key_set;
mod oracle;
mod presets;
mod pressure;
mod properties;
mod quirks;
mod settings;
mod signatures;
mod under_test;
