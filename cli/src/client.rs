//! Calls over HTTP: bounded in time and size, repeated only where that is safe, and never to
//! another host than the one that was named.

use std::time::{Duration, Instant};

use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Method, Url, redirect};
use serde_json::Value;

use crate::call::{Call, Repeat};
use crate::failure::{Exit, Failure, hint_of};
use crate::output::text::{escaped, plain};
use crate::redact::Secret;
use crate::settings::{Settings, is_loopback};

/// Most bytes of an answer: far more than the largest page of a list.
pub const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Most tries of one call.
const TRIES_MAX: u32 = 4;

/// The pause before the second try; it doubles with each further one.
const PAUSE: Duration = Duration::from_millis(200);

/// Most characters of a sentence of the platform that are shown.
const SENTENCE_CHARS_MAX: usize = 2_000;

/// An answer that is a success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The body, as it came; what could control a terminal is escaped, which is the same JSON.
    pub text: String,
    /// The same, read; null where there is none.
    pub body: Value,
    /// The version in the `ETag` header.
    pub version: Option<String>,
}

/// A caller of one platform.
#[derive(Debug)]
pub struct Client {
    http: reqwest::Client,
    settings: Settings,
    verbose: bool,
}

/// What one try came to.
enum Tried {
    Done(Answer),
    /// It failed; how.
    Failed(Failure, Cause),
}

/// Why a try failed, as far as it matters for another one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// It never left this machine.
    Unsent,
    /// It may pass, and nobody knows what became of the call.
    Passing,
    /// Another try would end alike.
    Final,
}

impl Client {
    /// A caller of the platform that the settings name.
    ///
    /// # Errors
    /// If this machine has no TLS to offer.
    pub fn new(settings: Settings, verbose: bool) -> Result<Self, Failure> {
        let mut builder = reqwest::Client::builder()
            // A redirect would take the key to wherever the answer points.
            .redirect(redirect::Policy::none())
            .user_agent(concat!("orl/", env!("CARGO_PKG_VERSION")));
        if is_loopback(&settings.url.value) {
            builder = builder.no_proxy();
        }
        let http = builder
            .build()
            .map_err(|error| Failure::local(causes(&error)))?;
        Ok(Self {
            http,
            settings,
            verbose,
        })
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Makes a call, with all its tries within `timeout`.
    ///
    /// # Errors
    /// [`Failure`], for every answer that is no success too.
    pub async fn send(&self, call: &Call, timeout: Duration) -> Result<Answer, Failure> {
        let (url, headers) = (self.url(call)?, self.headers(call)?);
        let began = Instant::now();
        let mut tries = 1;
        loop {
            let left = timeout.saturating_sub(began.elapsed());
            let attempt = self.attempt(call, url.clone(), headers.clone());
            let tried = tokio::time::timeout(left, attempt).await;
            let (failure, cause) = match tried {
                Ok(Tried::Done(answer)) => return Ok(answer),
                Ok(Tried::Failed(failure, cause)) => (failure, cause),
                Err(_) => return Err(self.too_slow(call, timeout)),
            };
            let repeatable = match cause {
                Cause::Unsent => true,
                Cause::Passing => call.repeat != Repeat::Never,
                Cause::Final => false,
            };
            let wanted = failure.wait;
            let pause = (PAUSE * 2_u32.pow(tries - 1)).max(wanted.unwrap_or_default());
            let left = timeout.saturating_sub(began.elapsed());
            if !repeatable || tries == TRIES_MAX {
                return Err(failure);
            }
            if pause >= left {
                return Err(match wanted {
                    Some(wanted) if wanted >= left => failure.hint(later(wanted)),
                    _ => failure,
                });
            }
            self.note(format_args!(
                "try {} in {} ms",
                tries + 1,
                pause.as_millis()
            ));
            tokio::time::sleep(pause).await;
            tries += 1;
        }
    }

    fn url(&self, call: &Call) -> Result<Url, Failure> {
        let base = &self.settings.url.value;
        let url = Url::parse(&format!("{base}{}", call.path));
        let mut url = url.map_err(|_| Failure::usage(format!("{base} is not a URL")))?;
        for (name, value) in &call.query {
            url.query_pairs_mut().append_pair(name, value);
        }
        Ok(url)
    }

    fn headers(&self, call: &Call) -> Result<HeaderMap, Failure> {
        let mut headers = HeaderMap::new();
        let mut put = |name: &'static str, value: &str, secret: bool| {
            let value = HeaderValue::from_str(value);
            let mut value =
                value.map_err(|_| Failure::usage(format!("{name} cannot hold this value")))?;
            value.set_sensitive(secret);
            headers.insert(name, value);
            Ok::<(), Failure>(())
        };
        put("accept", "application/json", false)?;
        if !call.open {
            let key = &self.settings.key_to_send()?.value;
            put("authorization", &format!("Bearer {}", key.reveal()), true)?;
        }
        if let Some(version) = &call.if_match {
            put("if-match", version, false)?;
        }
        if call.repeat == Repeat::Keyed {
            put("idempotency-key", &fresh_key()?, false)?;
        }
        if call.body.is_some() {
            put("content-type", "application/json", false)?;
        }
        Ok(headers)
    }

    async fn attempt(&self, call: &Call, url: Url, headers: HeaderMap) -> Tried {
        let began = Instant::now();
        let method = Method::from_bytes(call.method.as_bytes()).unwrap_or(Method::GET);
        let mut request = self.http.request(method, url.clone()).headers(headers);
        if let Some(body) = &call.body {
            request = request.body(body.to_string());
        }
        let mut response = match request.send().await {
            Ok(response) => response,
            Err(error) => {
                self.note(format_args!("{} {url}: {}", call.method, causes(&error)));
                return self.no_answer(call, &error);
            }
        };
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let mut bytes = Vec::new();
        loop {
            match response.chunk().await {
                Ok(None) => break,
                Ok(Some(chunk)) if bytes.len() + chunk.len() > ANSWER_BYTES_MAX => {
                    return self.too_long();
                }
                Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
                Err(error) => {
                    self.note(format_args!("{} {url}: {}", call.method, causes(&error)));
                    return self.cut(call);
                }
            }
        }
        self.note(format_args!(
            "{} {url}: {status} in {} ms, request id {}",
            call.method,
            began.elapsed().as_millis(),
            plain(header(&headers, "x-request-id").unwrap_or("none")),
        ));
        self.judged(call, status, &headers, bytes)
    }

    /// What an answer comes to.
    fn judged(&self, call: &Call, status: u16, headers: &HeaderMap, bytes: Vec<u8>) -> Tried {
        let text = String::from_utf8(bytes).ok();
        let mut text = text.map(|text| self.without_key(&text));
        let mut body = match &text {
            Some(text) if text.is_empty() && status == 204 => Some(Value::Null),
            Some(text) => serde_json::from_str::<Value>(text).ok(),
            None => None,
        };
        // A key may also have been written with escapes.
        let read = body.as_ref().map(Value::to_string);
        let clean = read.as_deref().map(|read| self.without_key(read));
        if clean != read {
            body = clean
                .as_deref()
                .and_then(|clean| serde_json::from_str(clean).ok());
            text = clean;
        }
        match (status, body, text) {
            (200..=299, Some(body), Some(text)) => Tried::Done(Answer {
                text: escaped(&text),
                body,
                version: header(headers, "etag")
                    .and_then(version)
                    .map(|tag| self.without_key(&tag)),
            }),
            (300..=399, _, _) => self.redirected(headers),
            (_, Some(body), _) if body["code"].is_string() => {
                self.refused(call, status, &body, headers)
            }
            (_, _, text) => self.strange(status, headers, text.as_deref()),
        }
    }

    /// An error of the platform.
    fn refused(&self, call: &Call, status: u16, body: &Value, headers: &HeaderMap) -> Tried {
        let text = |name: &str| body[name].as_str().map(plain);
        let code = text("code").unwrap_or_default();
        let sentence = text("error").unwrap_or_else(|| "no reason given".to_owned());
        let sentence: String = sentence.chars().take(SENTENCE_CHARS_MAX).collect();
        let mut failure = Failure::new(Exit::of_status(status), sentence);
        failure.hint = hint_of(status, &code).map(str::to_owned);
        if status == 401 {
            failure = self.refused_key(failure);
        }
        failure.code = Some(format!("{code} (HTTP {status})"));
        failure.request_id = text("requestId");
        let in_flight = code == "idempotency_key_in_flight";
        let passing = matches!(status, 429 | 502 | 503 | 504) || in_flight;
        let cause = if passing {
            Cause::Passing
        } else {
            Cause::Final
        };
        if passing && call.repeat != Repeat::Safe && status != 429 {
            failure = failure.hint(UNKNOWN);
        }
        failure.wait = retry_after(headers);
        Tried::Failed(failure, cause)
    }

    fn refused_key(&self, failure: Failure) -> Failure {
        let host = &self.settings.url.value;
        let source = self.settings.key.as_ref().map(|key| key.source.to_string());
        let source = source.unwrap_or_else(|| "nowhere".to_owned());
        Failure {
            what: format!("{host} refuses the API key from {source}: {}", failure.what),
            ..failure
        }
        .hint("it may be mistyped, revoked, expired or of another platform: orl auth login")
    }

    /// An answer that does not come from the platform.
    fn strange(&self, status: u16, headers: &HeaderMap, text: Option<&str>) -> Tried {
        let host = &self.settings.url.value;
        let kind = header(headers, "content-type").map_or("no content type".to_owned(), plain);
        let kind = self.without_key(&kind);
        let what = match text {
            None => format!("{host} answered {status} with bytes that are no UTF-8 ({kind})"),
            Some(text) => {
                let first = text.lines().map(str::trim).find(|line| !line.is_empty());
                let first: String = plain(first.unwrap_or("nothing")).chars().take(60).collect();
                format!("{host} answered {status}, but not as this API does: {first} ({kind})")
            }
        };
        let exit = match status {
            401 | 403 | 407 => Exit::Auth,
            _ => Exit::Server,
        };
        let hint = "is the URL right, and no proxy in between? orl auth status shows the URL";
        let passing = matches!(status, 429 | 502 | 503 | 504);
        let cause = if passing {
            Cause::Passing
        } else {
            Cause::Final
        };
        let mut failure = Failure::new(exit, what).hint(hint);
        failure.wait = retry_after(headers);
        Tried::Failed(failure, cause)
    }

    fn redirected(&self, headers: &HeaderMap) -> Tried {
        let host = &self.settings.url.value;
        let to = header(headers, "location").map_or("nowhere".to_owned(), plain);
        let to: String = self.without_key(&to).chars().take(200).collect();
        let what = format!("{host} points elsewhere ({to}); the API key is not sent there");
        let hint = "if that is the platform, give its URL with --url or orl auth login";
        Tried::Failed(Failure::new(Exit::Server, what).hint(hint), Cause::Final)
    }

    fn no_answer(&self, call: &Call, error: &reqwest::Error) -> Tried {
        let host = &self.settings.url.value;
        if error.is_connect() {
            let what = format!("cannot reach {host}: {}", root(error));
            let hint = "is it running, and is the URL right? orl auth status shows the URL";
            let failure = Failure::new(Exit::Server, what).hint(hint);
            return Tried::Failed(failure, Cause::Unsent);
        }
        let what = format!("{host} gave no answer: {}", root(error));
        let failure = Failure::new(Exit::Server, what).hint(outcome(call));
        Tried::Failed(failure, Cause::Passing)
    }

    fn cut(&self, call: &Call) -> Tried {
        let host = &self.settings.url.value;
        let what = format!("the answer of {host} was cut off");
        let failure = Failure::new(Exit::Server, what).hint(outcome(call));
        Tried::Failed(failure, Cause::Passing)
    }

    fn too_long(&self) -> Tried {
        let host = &self.settings.url.value;
        let most = ANSWER_BYTES_MAX / 1024 / 1024;
        let what = format!("the answer of {host} is longer than {most} MiB");
        let hint = "that is no answer of this API: is the URL right?";
        Tried::Failed(Failure::new(Exit::Server, what).hint(hint), Cause::Final)
    }

    fn too_slow(&self, call: &Call, timeout: Duration) -> Failure {
        let host = &self.settings.url.value;
        let what = format!("no answer from {host} within {}", shown(timeout));
        Failure::new(Exit::Server, what).hint(outcome(call))
    }

    /// A text without the key that is in use, whatever it looks like.
    fn without_key(&self, text: &str) -> String {
        match &self.settings.key {
            Some(key) => key.value.taken_out_of(text),
            None => text.to_owned(),
        }
    }

    /// Says what is going on, where that was asked for.
    fn note(&self, text: std::fmt::Arguments<'_>) {
        use std::io::Write as _;
        if !self.verbose {
            return;
        }
        let text = self.without_key(&crate::redact::redacted(&text.to_string()));
        // Nothing is left to do if nobody reads it.
        let _ = writeln!(std::io::stderr(), "orl: {text}");
    }

    /// The same platform with another key.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn with_key(
        &self,
        value: Secret,
        source: crate::settings::Source,
    ) -> Result<Self, Failure> {
        let mut settings = self.settings.clone();
        settings.key = Some(crate::settings::Setting { value, source });
        Self::new(settings, self.verbose)
    }
}

/// What to do where nobody knows whether a call was done.
const UNKNOWN: &str = "the outcome is not known: look with get or list before you try again";

fn outcome(call: &Call) -> &'static str {
    match call.repeat {
        Repeat::Safe => "try again; --timeout gives it more time",
        Repeat::Keyed | Repeat::Never => UNKNOWN,
    }
}

fn later(wanted: Duration) -> String {
    format!(
        "the platform asks to be left alone for {}: try again then",
        shown(wanted)
    )
}

/// A time for a person: `1.5s`, `30s`, `2m`.
#[must_use]
pub fn shown(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds >= 60 && seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        seconds if time.subsec_millis() == 0 => format!("{seconds}s"),
        _ => format!("{:.1}s", time.as_secs_f64()),
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The version in an `ETag`. A proxy that packs answers makes a weak one of it: `W/"3"`.
fn version(tag: &str) -> Option<String> {
    let tag = tag.trim().trim_start_matches("W/").trim_matches('"');
    (!tag.is_empty()).then(|| plain(tag))
}

/// How long the platform wants to be left alone. A number too large to be one is for ever.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = header(headers, "retry-after")?.trim();
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let seconds = text.parse().unwrap_or(u64::from(u32::MAX));
    digits.then(|| Duration::from_secs(seconds.min(u64::from(u32::MAX))))
}

/// The innermost cause, which says most.
fn root(error: &reqwest::Error) -> String {
    let mut below: &dyn std::error::Error = error;
    while let Some(cause) = below.source() {
        below = cause;
    }
    plain(&below.to_string())
}

fn causes(error: &reqwest::Error) -> String {
    let mut text = String::new();
    let mut below: Option<&dyn std::error::Error> = Some(error);
    while let Some(cause) = below {
        let own = if text.is_empty() {
            "no answer".to_owned()
        } else {
            cause.to_string()
        };
        text = if text.is_empty() {
            own
        } else {
            format!("{text}: {own}")
        };
        below = cause.source();
    }
    plain(&text)
}

/// A key for `Idempotency-Key` that no other call has.
fn fresh_key() -> Result<String, Failure> {
    let mut bytes = [0_u8; 16];
    #[expect(
        clippy::disallowed_methods,
        reason = "this side of the API has no port for randomness, and no test repeats it"
    )]
    let filled = getrandom::fill(&mut bytes);
    filled.map_err(|error| Failure::local(format!("no random numbers: {error}")))?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("orl-{digits}"))
}
