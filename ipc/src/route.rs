//! Requests and replies, and the one table of their routes and method names.

use hyper::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::ErrorBody;
use crate::wire::{
    AskReply, AskRequest, FilesReply, FilesRequest, ForgetReply, ForgetRequest, RootRequest, RootsReply, SearchReply,
    SearchRequest, StatusReply,
};

/// Everything a peer can ask for.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// The daemon at a glance.
    Status,
    /// Passages.
    Search(SearchRequest),
    /// An answer.
    Ask(AskRequest),
    /// The watched folders.
    Roots,
    /// Watch a folder.
    AddRoot(RootRequest),
    /// Stop watching a folder.
    RemoveRoot(RootRequest),
    /// The known files.
    Files(FilesRequest),
    /// Remove a document from the index.
    Forget(ForgetRequest),
    /// Follow what happens.
    Events,
}

/// The reply to a request; it serializes as its content.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Reply {
    /// To `Status`.
    Status(Box<StatusReply>),
    /// To `Search`.
    Search(SearchReply),
    /// To `Ask`; the `done` event of a stream.
    Ask(AskReply),
    /// To `Roots`, `AddRoot` and `RemoveRoot`.
    Roots(RootsReply),
    /// To `Files`.
    Files(FilesReply),
    /// To `Forget`.
    Forget(ForgetReply),
    /// To `Events`: the stream ended.
    Closed {},
}

/// A request's kind, without its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Status,
    Search,
    Ask,
    Roots,
    AddRoot,
    RemoveRoot,
    Files,
    Forget,
    Events,
}

/// One row: how a kind is called in HTTP and in JSON-RPC.
struct Route {
    kind: Kind,
    method: Method,
    path: &'static str,
    rpc: &'static str,
}

const ROUTES: [Route; 9] = [
    Route { kind: Kind::Status, method: Method::GET, path: "/v1/status", rpc: "status" },
    Route { kind: Kind::Search, method: Method::POST, path: "/v1/search", rpc: "search" },
    Route { kind: Kind::Ask, method: Method::POST, path: "/v1/ask", rpc: "ask" },
    Route { kind: Kind::Roots, method: Method::GET, path: "/v1/roots", rpc: "roots.list" },
    Route { kind: Kind::AddRoot, method: Method::POST, path: "/v1/roots", rpc: "roots.add" },
    Route { kind: Kind::RemoveRoot, method: Method::DELETE, path: "/v1/roots", rpc: "roots.remove" },
    Route { kind: Kind::Files, method: Method::GET, path: "/v1/files", rpc: "files" },
    Route { kind: Kind::Forget, method: Method::POST, path: "/v1/forget", rpc: "forget" },
    Route { kind: Kind::Events, method: Method::GET, path: "/v1/events", rpc: "events" },
];

/// No parameters; says so when there are some.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// Parameters before they are typed.
enum Params<'a> {
    Bytes(&'a [u8]),
    Value(Value),
}

impl Params<'_> {
    fn parse<T: DeserializeOwned>(self, what: &str) -> Result<T, ErrorBody> {
        let parsed = match self {
            Params::Bytes(bytes) if bytes.trim_ascii().is_empty() => serde_json::from_slice(b"{}"),
            Params::Bytes(bytes) => serde_json::from_slice(bytes),
            Params::Value(value) => serde_json::from_value(value),
        };
        parsed.map_err(|error| ErrorBody::bad_request(format!("{what}: {error}")))
    }
}

/// Why a request has no route: an HTTP status beside the error.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) error: ErrorBody,
}

impl From<ErrorBody> for Refusal {
    fn from(error: ErrorBody) -> Self {
        Self { status: error.code.http_status(), error }
    }
}

/// Why a JSON-RPC call has no meaning.
#[derive(Debug)]
pub(crate) enum RpcRefusal {
    UnknownMethod(ErrorBody),
    BadParams(ErrorBody),
}

impl Request {
    fn parse(route: &Route, params: Params<'_>) -> Result<Self, ErrorBody> {
        let what = route.rpc;
        Ok(match route.kind {
            Kind::Status => params.parse::<Nothing>(what).map(|_| Self::Status)?,
            Kind::Search => Self::Search(params.parse(what)?),
            Kind::Ask => Self::Ask(params.parse(what)?),
            Kind::Roots => params.parse::<Nothing>(what).map(|_| Self::Roots)?,
            Kind::AddRoot => Self::AddRoot(params.parse(what)?),
            Kind::RemoveRoot => Self::RemoveRoot(params.parse(what)?),
            Kind::Files => Self::Files(params.parse(what)?),
            Kind::Forget => Self::Forget(params.parse(what)?),
            Kind::Events => params.parse::<Nothing>(what).map(|_| Self::Events)?,
        })
    }

    /// Reads an HTTP request. Parameters come in the body, or in the query where there is no body.
    pub(crate) fn from_http(method: &Method, path: &str, query: Option<&str>, body: &[u8]) -> Result<Self, Refusal> {
        let route = find_route(method, path)?;
        let query = query.filter(|query| !query.is_empty());
        if let (Some(query), true) = (query, body.is_empty()) {
            return Ok(Self::parse(route, Params::Value(parse_query(query)?))?);
        }
        if query.is_some() {
            return Err(ErrorBody::bad_request("parameters come in the query or in the body, not in both").into());
        }
        Ok(Self::parse(route, Params::Bytes(body))?)
    }

    /// Reads a JSON-RPC call.
    pub(crate) fn from_rpc(method: &str, params: Option<Value>) -> Result<Self, RpcRefusal> {
        let Some(route) = ROUTES.iter().find(|route| route.rpc == method) else {
            let known: Vec<_> = ROUTES.iter().map(|route| route.rpc).collect();
            let error = ErrorBody::bad_request(format!("there is no method {method:?}"));
            return Err(RpcRefusal::UnknownMethod(error.with_hint(format!("methods: {}", known.join(", ")))));
        };
        let params = Params::Value(params.unwrap_or_else(|| Value::Object(Map::new())));
        Self::parse(route, params).map_err(RpcRefusal::BadParams)
    }

    /// Method, target and body of the request, for a client.
    pub(crate) fn to_http(&self) -> Result<(Method, String, Vec<u8>), serde_json::Error> {
        let kind = self.kind();
        let (method, path) = ROUTES
            .iter()
            .find(|route| route.kind == kind)
            .map_or((Method::GET, "/"), |route| (route.method.clone(), route.path));
        let body = match self {
            Self::Status | Self::Roots | Self::Events => Vec::new(),
            Self::Search(params) => serde_json::to_vec(params)?,
            Self::Ask(params) => serde_json::to_vec(params)?,
            Self::AddRoot(params) | Self::RemoveRoot(params) => serde_json::to_vec(params)?,
            Self::Forget(params) => serde_json::to_vec(params)?,
            Self::Files(params) => {
                let query = encode_query(&serde_json::to_value(params)?);
                return Ok((
                    method,
                    if query.is_empty() { path.into() } else { format!("{path}?{query}") },
                    Vec::new(),
                ));
            }
        };
        Ok((method, path.into(), body))
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Status => Kind::Status,
            Self::Search(_) => Kind::Search,
            Self::Ask(_) => Kind::Ask,
            Self::Roots => Kind::Roots,
            Self::AddRoot(_) => Kind::AddRoot,
            Self::RemoveRoot(_) => Kind::RemoveRoot,
            Self::Files(_) => Kind::Files,
            Self::Forget(_) => Kind::Forget,
            Self::Events => Kind::Events,
        }
    }

    /// Whether the peer wants events.
    pub(crate) fn is_streaming(&self) -> bool {
        match self {
            Self::Events => true,
            Self::Ask(request) => request.stream,
            _ => false,
        }
    }

    /// The time the request allows, in milliseconds.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        match self {
            Self::Ask(request) => request.deadline_ms,
            _ => None,
        }
    }
}

fn find_route(method: &Method, path: &str) -> Result<&'static Route, Refusal> {
    let mut on_path = ROUTES.iter().filter(|route| route.path == path).peekable();
    if on_path.peek().is_none() {
        let mut known: Vec<_> = ROUTES.iter().map(|route| route.path).collect();
        known.dedup();
        let error = ErrorBody::bad_request(format!("there is no route {path:?}"));
        return Err(Refusal { status: 404, error: error.with_hint(format!("routes: {}", known.join(", "))) });
    }
    let allowed: Vec<_> = on_path.clone().map(|route| route.method.as_str()).collect();
    on_path.find(|route| route.method == *method).ok_or_else(|| {
        let error = ErrorBody::bad_request(format!("{path} does not take {method}"));
        Refusal { status: 405, error: error.with_hint(format!("use {}", allowed.join(" or "))) }
    })
}

/// A query string as a JSON object of strings; `limit`, the one number among the parameters, as a number.
fn parse_query(query: &str) -> Result<Value, ErrorBody> {
    let mut object = Map::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (key, value) = (percent_decode(key)?, percent_decode(value)?);
        let value = match value.parse::<u64>() {
            Ok(number) if key == "limit" => Value::from(number),
            _ => Value::from(value),
        };
        // An empty `state=` or `path=` sets no condition, as the contract's `?state=&path=` reads.
        if value == "" {
            object.entry(key).or_insert(Value::Null);
        } else if object.insert(key.clone(), value).is_some_and(|before| !before.is_null()) {
            return Err(ErrorBody::bad_request(format!("the query names `{key}` twice")));
        }
    }
    Ok(Value::Object(object))
}

fn percent_decode(text: &str) -> Result<String, ErrorBody> {
    let bad = || ErrorBody::bad_request(format!("the query holds a malformed escape in {text:?}"));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16)).ok_or_else(bad);
                let value = digit()? * 16 + digit()?;
                u8::try_from(value).map_err(|_| bad())?
            }
            _ => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

fn encode_query(params: &Value) -> String {
    let pairs = params.as_object().into_iter().flatten().filter_map(|(key, value)| match value {
        Value::String(text) => Some(format!("{key}={}", percent_encode(text))),
        Value::Number(number) => Some(format!("{key}={number}")),
        _ => None,
    });
    pairs.collect::<Vec<_>>().join("&")
}

fn percent_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::FileState;

    #[test]
    fn every_request_survives_its_own_http_form() {
        let root = RootRequest { path: "/notes/a b".into() };
        let files = FilesRequest {
            state: Some(FileState::NeedsOcr),
            path: Some("/notes/ö %+&=?#/資料".into()),
            after: Some("/a".into()),
            limit: Some(7),
        };
        let requests = [
            Request::Status,
            Request::Search(SearchRequest { query: "q".into(), ..Default::default() }),
            Request::Ask(AskRequest { question: "q".into(), stream: true, ..Default::default() }),
            Request::Roots,
            Request::AddRoot(root.clone()),
            Request::RemoveRoot(root),
            Request::Files(files),
            Request::Files(FilesRequest::default()),
            Request::Forget(ForgetRequest { path: "/notes/x".into() }),
            Request::Events,
        ];
        for request in requests {
            let (method, target, body) = request.to_http().unwrap();
            let (path, query) = target.split_once('?').map_or((&*target, None), |(path, query)| (path, Some(query)));
            assert_eq!(Request::from_http(&method, path, query, &body).unwrap(), request);
        }
    }

    #[test]
    fn refusals_name_what_is_wrong() {
        let refuse = |method: &Method, path: &str, query: Option<&str>, body: &str| {
            let refusal = Request::from_http(method, path, query, body.as_bytes()).unwrap_err();
            (refusal.status, refusal.error.message)
        };
        assert_eq!(refuse(&Method::GET, "/v2/status", None, "").0, 404);
        assert_eq!(refuse(&Method::PUT, "/v1/ask", None, "").0, 405);
        let (status, message) = refuse(&Method::POST, "/v1/ask", None, r#"{"question":"q","steam":1}"#);
        assert!(status == 400 && message.contains("`steam`"), "{message}");
        let (_, message) = refuse(&Method::POST, "/v1/ask", None, "");
        assert!(message.contains("`question`"), "{message}");
        let (_, message) = refuse(&Method::GET, "/v1/files", Some("sate=failed"), "");
        assert!(message.contains("`sate`"), "{message}");
        let (_, message) = refuse(&Method::GET, "/v1/files", Some("path=%f"), "");
        assert!(message.contains("escape"), "{message}");
        let (_, message) = refuse(&Method::GET, "/v1/files", Some("path=/a&path=/b"), "");
        assert!(message.contains("twice"), "{message}");
        let (_, message) = refuse(&Method::GET, "/v1/status", Some("verbose=1"), "");
        assert!(message.contains("`verbose`"), "{message}");
    }

    #[test]
    fn empty_conditions_are_none() {
        let request = Request::from_http(&Method::GET, "/v1/files", Some("state=&path="), b"").unwrap();
        assert_eq!(request, Request::Files(FilesRequest::default()));
    }

    #[test]
    fn hostile_nesting_is_an_error_and_no_overflow() {
        let body = "[".repeat(200_000);
        let refusal = Request::from_http(&Method::POST, "/v1/search", None, body.as_bytes()).unwrap_err();
        assert_eq!(refusal.status, 400);
    }
}
