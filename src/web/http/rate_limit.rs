//! Limits on the requests of one client. Each instance has its own counters, in memory.
//!
//! A counter belongs to the client's IP address, to a session at one, to a signed-in user, or to an
//! API key, and never to the account that a request without a session names. So no caller can use
//! up another user's limit. A thief with a copy of an access token can use up one of the owner's,
//! the changes of the name. The algorithm is GCRA, a bucket that refills steadily. A refused
//! request takes nothing from the bucket, so waiting always helps.
//!
//! The memory is bounded by the traffic. A key is dropped once its bucket is full again, and each
//! admitted request keeps it for one share of a minute. Ten thousand requests a second from as many
//! addresses leave some hundred thousand keys of about 60 bytes between two sweeps.

use std::array;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use strum::VariantArray;
use tokio::time::{MissedTickBehavior, interval};
use uuid::Uuid;

use crate::{background, config};

/// The number of keys in one /48 that may use up their limits at once.
const KEYS_OF_A_SITE: NonZeroU32 = NonZeroU32::new(16).unwrap();
/// The requests with access tokens for each refresh that an IP address may send: a phone refreshes
/// once in the life of an access token, and sends a handful of other requests until the next time.
const REQUESTS_OF_A_REFRESH: NonZeroU32 = NonZeroU32::new(5).unwrap();
/// The number of changes of name in a minute. Each is an event and a message to every webhook.
const NAMES_PER_MINUTE: NonZeroU32 = NonZeroU32::new(10).unwrap();
/// The time between two sweeps.
const SWEEP: Duration = Duration::from_secs(10);

/// The limits, each counted separately, by their names in `RateLimit-Policy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Policy {
    /// Sign-ins from an IP address.
    SignIn,
    /// Refreshes from an IP address.
    Refresh,
    /// Requests of a session from an IP address.
    Session,
    /// Changes of a user's name.
    Name,
    /// Requests with access tokens from an IP address.
    Bearer,
    /// Messages of providers from an IP address that has sent genuine ones.
    ProviderEvents,
    /// Messages in the name of providers from any other IP address: each may cost the check of a
    /// signature.
    UnknownSender,
    /// Requests for admin pages from an IP address, signed in or not: each costs a query.
    StaffPages,
    /// Sign-ins of staff from an IP address.
    StaffSignIn,
    /// Requests with one API key.
    ApiKey,
    /// Requests from an IP address with an API key that this instance has not found valid: each
    /// costs a query.
    UnknownApiKey,
}

/// The key under which requests are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// A session, a user or an API key; zero if the address alone counts.
    id: u128,
    /// An IP address, of IPv6 the first 64 bits; zero if the address does not count.
    network: u128,
}

impl Key {
    /// Returns the key of an IP address in canonical form. An IPv6 subscriber has at least a /64
    /// and a new address in it for every request (RFC 8981), so only the first 64 bits count.
    pub fn address(address: Option<IpAddr>) -> Self {
        let network = match address {
            // The last 64 bits are never zero in IPv4-mapped form (RFC 4291 §2.5.5.2).
            Some(IpAddr::V4(v4)) => v4.to_ipv6_mapped().to_bits(),
            Some(IpAddr::V6(v6)) => v6.to_bits() & !u128::from(u64::MAX),
            None => 0,
        };
        Self { id: 0, network }
    }

    /// Returns the key with the /48 in the place of an IPv6 address, or `None` for a key without an
    /// IPv6 address.
    const fn site(self) -> Option<Self> {
        let is_v6 = self.network & u64::MAX as u128 == 0 && self.network != 0;
        if is_v6 {
            Some(Self {
                network: self.network >> 80 << 80,
                ..self
            })
        } else {
            None
        }
    }

    /// Returns the key of a session that is used from an IP address. A thief with its access token
    /// uses up the limit of another address.
    pub fn session(id: Uuid, address: Option<IpAddr>) -> Self {
        Self {
            id: id.as_u128(),
            ..Self::address(address)
        }
    }

    /// Returns the key of a user, of any session and from any IP address.
    pub const fn user(id: Uuid) -> Self {
        Self {
            id: id.as_u128(),
            network: 0,
        }
    }

    pub const fn api_key(id: Uuid) -> Self {
        Self {
            id: id.as_u128(),
            network: 0,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub admitted: bool,
    /// The number of requests that may follow at once.
    pub remaining: u32,
    /// The seconds until one more request is allowed.
    pub seconds: u32,
}

/// All rate limits, managed by Rocket. Clones share them.
#[derive(Debug, Clone)]
pub struct RateLimits<C: Clock + Clone = DefaultClock>(Arc<RwLock<Option<Arc<Limiters<C>>>>>);

#[derive(Debug)]
struct Limiters<C: Clock + Clone> {
    /// One limiter for each [`Policy`], in its order.
    by_policy: [Limiter<C>; Policy::VARIANTS.len()],
}

type Buckets<C> = RateLimiter<Key, DashMapStateStore<Key>, C, StateInformationMiddleware>;

#[derive(Debug)]
struct Limiter<C: Clock + Clone> {
    buckets: Buckets<C>,
    /// The buckets of each /48, with a larger limit. One subscriber may have a /48, and so 65,536
    /// keys.
    sites: Buckets<C>,
    /// The seconds until one used request is available again.
    share: u32,
    /// The policy's item of the `RateLimit-Policy` header.
    field: String,
}

impl RateLimits {
    /// Opens the counters and the task that drops stale keys. The task ends with the counters.
    pub fn open(settings: &config::RateLimit) -> Self {
        let limits = Self::with_clock(settings, &DefaultClock::default());
        if let Some(limiters) = limits.now() {
            let limiters = Arc::downgrade(&limiters);
            background::spawn("rate limits", move || {
                let limiters = limiters.clone();
                async move {
                    let mut ticks = interval(SWEEP);
                    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
                    loop {
                        ticks.tick().await;
                        let Some(limiters) = limiters.upgrade() else {
                            return;
                        };
                        limiters.sweep();
                    }
                }
            });
        }
        limits
    }

    pub fn change(&self, settings: &config::RateLimit) {
        let new = Self::open(settings).now();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = new;
    }
}

impl<C: Clock + Clone> RateLimits<C> {
    /// Opens the counters without the task, on this clock.
    pub fn with_clock(settings: &config::RateLimit, clock: &C) -> Self {
        let buckets = |per_minute| {
            RateLimiter::dashmap_with_clock(Quota::per_minute(per_minute), clock.clone())
                .with_middleware()
        };
        let limiter = |policy| {
            let per_minute = match policy {
                Policy::SignIn
                | Policy::StaffSignIn
                | Policy::UnknownApiKey
                | Policy::UnknownSender => settings.sign_in_per_minute,
                Policy::Refresh => settings.refresh_per_minute,
                Policy::Bearer => {
                    let handful = settings
                        .refresh_per_minute
                        .saturating_mul(REQUESTS_OF_A_REFRESH);
                    handful.max(settings.session_per_minute)
                }
                Policy::Session => settings.session_per_minute,
                Policy::Name => settings.session_per_minute.min(NAMES_PER_MINUTE),
                Policy::StaffPages => settings.staff_pages_per_minute,
                Policy::ApiKey | Policy::ProviderEvents => settings.api_key_per_minute,
            };
            Limiter {
                buckets: buckets(per_minute),
                sites: buckets(per_minute.saturating_mul(KEYS_OF_A_SITE)),
                share: 60_u32.div_ceil(per_minute.get()),
                field: format!("\"{policy}\";q={per_minute};w=60"),
            }
        };
        let limiters = || Limiters {
            by_policy: array::from_fn(|number| limiter(Policy::VARIANTS[number])),
        };
        Self(Arc::new(RwLock::new(
            settings.enabled.then(|| Arc::new(limiters())),
        )))
    }

    fn now(&self) -> Option<Arc<Limiters<C>>> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub fn count(&self, policy: Policy, key: Key) -> Option<Standing> {
        Some(self.now()?.by_policy[policy as usize].count(key))
    }

    /// Returns the policy's item of `RateLimit-Policy`, or `None` if the limits are switched off.
    pub fn field(&self, policy: Policy) -> Option<String> {
        Some(self.now()?.by_policy[policy as usize].field.clone())
    }

    /// Drops the keys whose buckets are full.
    pub fn sweep(&self) {
        if let Some(limiters) = self.now() {
            limiters.sweep();
        }
    }

    pub fn keys(&self) -> usize {
        let limiters = self.now();
        let limiters = limiters.iter().flat_map(|limiters| &limiters.by_policy);
        limiters
            .map(|limiter| limiter.buckets.len() + limiter.sites.len())
            .sum()
    }
}

impl<C: Clock + Clone> Limiters<C> {
    fn sweep(&self) {
        for limiter in &self.by_policy {
            for buckets in [&limiter.buckets, &limiter.sites] {
                buckets.retain_recent();
                buckets.shrink_to_fit();
            }
        }
    }
}

impl<C: Clock + Clone> Limiter<C> {
    fn count(&self, key: Key) -> Standing {
        let standing = self.count_in(&self.buckets, key);
        match key
            .site()
            .filter(|_| standing.admitted)
            .map(|site| self.count_in(&self.sites, site))
        {
            // The key's own bucket has lost a request, too; that is negligible beside the whole
            // /48.
            Some(of_site) if !of_site.admitted => of_site,
            Some(of_site) => Standing {
                remaining: standing.remaining.min(of_site.remaining),
                ..standing
            },
            None => standing,
        }
    }

    fn count_in(&self, buckets: &Buckets<C>, key: Key) -> Standing {
        match buckets.check_key(&key) {
            Ok(state) => {
                let remaining = state.remaining_burst_capacity();
                Standing {
                    admitted: true,
                    remaining,
                    seconds: self.share,
                }
            }
            Err(until) => {
                let wait = until.wait_time_from(buckets.clock().now());
                // Rounded up, or the client would retry too early; and never zero, since it was
                // refused.
                let seconds = u32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(self.share);
                Standing {
                    admitted: false,
                    remaining: 0,
                    seconds: seconds.max(1),
                }
            }
        }
    }
}
