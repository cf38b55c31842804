//! The route table: every method and path, who may call it, and which function answers. The router,
//! the gateway's routes and the authorisation test all come from it.

use app::auth::Permission;
use app::grant::Role;

/// A deployed function that answers HTTP calls; named as its folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FunctionName {
    /// Puts units on the spot market.
    Release,
    /// Takes units back.
    Reclaim,
    /// Ends reservations.
    End,
    /// The rest of a reservation's life.
    Reservations,
    /// Virtual machines.
    Vms,
    /// Nodes and their agents.
    Nodes,
    /// API keys.
    Keys,
}

impl FunctionName {
    /// All of them.
    pub const ALL: [FunctionName; 7] = [
        FunctionName::Release,
        FunctionName::Reclaim,
        FunctionName::End,
        FunctionName::Reservations,
        FunctionName::Vms,
        FunctionName::Nodes,
        FunctionName::Keys,
    ];

    /// The function that also answers what no route matches.
    pub const DEFAULT: FunctionName = FunctionName::Nodes;

    /// The name of its folder.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            FunctionName::Release => "release",
            FunctionName::Reclaim => "reclaim",
            FunctionName::End => "end",
            FunctionName::Reservations => "reservations",
            FunctionName::Vms => "vms",
            FunctionName::Nodes => "nodes",
            FunctionName::Keys => "keys",
        }
    }
}

/// What a route does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is described by its route below")]
pub enum Operation {
    ReleaseUnits,
    ReclaimUnits,
    EndReservation,
    CreateReservation,
    ListReservations,
    GetReservation,
    ReaffirmReservation,
    ListAuditRecords,
    ListOrgReservations,
    PutNode,
    GetNode,
    PutTopology,
    ListNodes,
    ListTerminations,
    ConfirmTermination,
    CreateVm,
    ListVms,
    GetVm,
    TerminateVm,
    ListAvailability,
    CreateKey,
    ListKeys,
    RevokeKey,
    GetCaller,
    GetHealth,
    GetApiDocument,
}

/// Who may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anyone, without a key: nothing of the call is looked at that a key would be needed for.
    Open,
    /// Any valid key.
    AnyKey,
    /// Keys with one of these permissions.
    Permission(&'static [Permission]),
    /// Keys with one of these roles, and operators.
    Role(&'static [Role]),
}

/// How a caller without the needed permission is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Otherwise {
    /// As if there were nothing there.
    NotFound,
    /// With 403: on an org's own paths alone.
    Forbidden,
}

/// Whether a request has a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyRule {
    /// It must not.
    None,
    /// It may.
    Optional,
    /// It must.
    Required,
}

/// One route.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// The method.
    pub method: &'static str,
    /// The path, with its parameters in braces.
    pub path: &'static str,
    /// The function that answers.
    pub function: FunctionName,
    /// What it does.
    pub operation: Operation,
    /// Who may call.
    pub access: Access,
    /// How a key that may not is refused.
    pub otherwise: Otherwise,
    /// Whether there is a body.
    pub body: BodyRule,
    /// The query parameters it knows.
    pub query: &'static [&'static str],
    /// Whether `If-Match` is understood.
    pub if_match: bool,
    /// Whether `Idempotency-Key` is understood.
    pub repeatable: bool,
}

const CAPACITY: &[Permission] = &[Permission::ReservationCapacity];
const AGENT: &[Permission] = &[Permission::NodeAgent, Permission::ReservationCapacity];
const STOP: &[Permission] = &[Permission::VmsWrite, Permission::ReservationCapacity];
const PAGE: &[&str] = &["limit", "cursor"];

impl Route {
    const fn new(
        method: &'static str,
        path: &'static str,
        function: FunctionName,
        operation: Operation,
    ) -> Self {
        Self {
            method,
            path,
            function,
            operation,
            access: Access::AnyKey,
            otherwise: Otherwise::NotFound,
            body: BodyRule::None,
            query: &[],
            if_match: false,
            repeatable: false,
        }
    }

    const fn needs(mut self, any_of: &'static [Permission], otherwise: Otherwise) -> Self {
        self.access = Access::Permission(any_of);
        self.otherwise = otherwise;
        self
    }

    const fn keepers(mut self) -> Self {
        self.access = Access::Role(Role::KEEPERS);
        self.otherwise = Otherwise::Forbidden;
        self
    }

    const fn open(mut self) -> Self {
        self.access = Access::Open;
        self
    }

    const fn body(mut self, body: BodyRule) -> Self {
        self.body = body;
        self
    }

    const fn query(mut self, query: &'static [&'static str]) -> Self {
        self.query = query;
        self
    }

    const fn if_match(mut self) -> Self {
        self.if_match = true;
        self
    }

    const fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }
}

/// THE table.
pub static ROUTES: &[Route] = &[
    Route::new(
        "POST",
        "/v1/nodes/{nodeId}/reservations/{id}/release",
        FunctionName::Release,
        Operation::ReleaseUnits,
    )
    .needs(CAPACITY, Otherwise::NotFound)
    .body(BodyRule::Required)
    .if_match()
    .repeatable(),
    Route::new(
        "POST",
        "/v1/nodes/{nodeId}/reservations/{id}/reclaim",
        FunctionName::Reclaim,
        Operation::ReclaimUnits,
    )
    .needs(CAPACITY, Otherwise::NotFound)
    .body(BodyRule::Required)
    .query(&["dryRun"])
    .if_match()
    .repeatable(),
    Route::new(
        "POST",
        "/v1/nodes/{nodeId}/reservations/{id}/end",
        FunctionName::End,
        Operation::EndReservation,
    )
    .needs(CAPACITY, Otherwise::NotFound)
    .body(BodyRule::Optional)
    .if_match()
    .repeatable(),
    Route::new(
        "POST",
        "/v1/nodes/{nodeId}/reservations",
        FunctionName::Reservations,
        Operation::CreateReservation,
    )
    .needs(CAPACITY, Otherwise::NotFound)
    .body(BodyRule::Required)
    .repeatable(),
    Route::new(
        "GET",
        "/v1/nodes/{nodeId}/reservations",
        FunctionName::Reservations,
        Operation::ListReservations,
    )
    .query(&["limit", "cursor", "status"]),
    Route::new(
        "GET",
        "/v1/nodes/{nodeId}/reservations/{id}",
        FunctionName::Reservations,
        Operation::GetReservation,
    ),
    Route::new(
        "POST",
        "/v1/nodes/{nodeId}/reservations/{id}/reaffirm",
        FunctionName::Reservations,
        Operation::ReaffirmReservation,
    )
    .needs(CAPACITY, Otherwise::NotFound)
    .body(BodyRule::Optional)
    .if_match()
    .repeatable(),
    Route::new(
        "GET",
        "/v1/nodes/{nodeId}/reservations/{id}/audit",
        FunctionName::Reservations,
        Operation::ListAuditRecords,
    )
    .query(PAGE),
    Route::new(
        "GET",
        "/v1/orgs/{orgId}/reservations",
        FunctionName::Reservations,
        Operation::ListOrgReservations,
    )
    .query(&["limit", "cursor", "role", "status"]),
    Route::new(
        "GET",
        "/v1/nodes",
        FunctionName::Nodes,
        Operation::ListNodes,
    )
    .query(PAGE),
    Route::new(
        "PUT",
        "/v1/nodes/{nodeId}",
        FunctionName::Nodes,
        Operation::PutNode,
    )
    .needs(CAPACITY, Otherwise::NotFound)
    .body(BodyRule::Required),
    Route::new(
        "GET",
        "/v1/nodes/{nodeId}",
        FunctionName::Nodes,
        Operation::GetNode,
    ),
    Route::new(
        "PUT",
        "/v1/nodes/{nodeId}/topology",
        FunctionName::Nodes,
        Operation::PutTopology,
    )
    .needs(AGENT, Otherwise::NotFound)
    .body(BodyRule::Required),
    Route::new(
        "GET",
        "/v1/nodes/{nodeId}/terminations",
        FunctionName::Nodes,
        Operation::ListTerminations,
    ),
    Route::new(
        "POST",
        "/v1/nodes/{nodeId}/terminations/{vmId}/confirm",
        FunctionName::Nodes,
        Operation::ConfirmTermination,
    )
    .needs(AGENT, Otherwise::NotFound)
    .body(BodyRule::Optional),
    Route::new(
        "POST",
        "/v1/orgs/{orgId}/vms/create",
        FunctionName::Vms,
        Operation::CreateVm,
    )
    .needs(&[Permission::VmsWrite], Otherwise::Forbidden)
    .body(BodyRule::Required)
    .repeatable(),
    Route::new(
        "GET",
        "/v1/orgs/{orgId}/vms",
        FunctionName::Vms,
        Operation::ListVms,
    )
    .needs(&[Permission::VmsRead], Otherwise::Forbidden)
    .query(PAGE),
    Route::new("GET", "/v1/vms/{id}", FunctionName::Vms, Operation::GetVm)
        .needs(&[Permission::VmsRead], Otherwise::NotFound),
    Route::new(
        "POST",
        "/v1/vms/{id}/terminate",
        FunctionName::Vms,
        Operation::TerminateVm,
    )
    .needs(STOP, Otherwise::NotFound)
    .body(BodyRule::Optional),
    Route::new(
        "GET",
        "/v1/gpu-availability",
        FunctionName::Vms,
        Operation::ListAvailability,
    )
    .query(&["limit", "cursor", "tier", "gpuModelId"]),
    Route::new(
        "POST",
        "/v1/orgs/{orgId}/api-keys/create",
        FunctionName::Keys,
        Operation::CreateKey,
    )
    .keepers()
    .body(BodyRule::Required),
    Route::new(
        "GET",
        "/v1/orgs/{orgId}/api-keys",
        FunctionName::Keys,
        Operation::ListKeys,
    )
    .keepers()
    .query(PAGE),
    Route::new(
        "DELETE",
        "/v1/orgs/{orgId}/api-keys/{id}",
        FunctionName::Keys,
        Operation::RevokeKey,
    )
    .keepers(),
    Route::new(
        "GET",
        "/v1/whoami",
        FunctionName::Keys,
        Operation::GetCaller,
    ),
    Route::new(
        "GET",
        "/healthz",
        FunctionName::DEFAULT,
        Operation::GetHealth,
    )
    .open(),
    Route::new(
        "GET",
        "/v1/openapi.json",
        FunctionName::DEFAULT,
        Operation::GetApiDocument,
    )
    .open(),
];

/// What a method and a path come to.
#[derive(Debug)]
pub enum Found {
    /// A route, with the path's parameters by name, decoded.
    Route(&'static Route, Vec<(&'static str, String)>),
    /// The path exists, but not with this method; with these.
    WrongMethod(Vec<&'static str>),
    /// No route has this path.
    NoPath,
}

/// Finds the route of a request by its method and its raw path.
#[must_use]
pub fn find(method: &str, path: &str) -> Found {
    let matching: Vec<(&Route, Vec<(&str, String)>)> = ROUTES
        .iter()
        .filter_map(|route| Some((route, parameters(route.path, path)?)))
        .collect();
    let allowed: Vec<&str> = matching.iter().map(|(route, _)| route.method).collect();
    match matching
        .into_iter()
        .find(|(route, _)| route.method == method)
    {
        Some((route, parameters)) => Found::Route(route, parameters),
        None if allowed.is_empty() => Found::NoPath,
        None => Found::WrongMethod(allowed),
    }
}

/// The parameters of `path` by the pattern's names, if it fits the pattern.
fn parameters(pattern: &'static str, path: &str) -> Option<Vec<(&'static str, String)>> {
    let mut out = Vec::new();
    let mut given = path.split('/');
    for wanted in pattern.split('/') {
        let segment = given.next()?;
        match wanted
            .strip_prefix('{')
            .and_then(|name| name.strip_suffix('}'))
        {
            Some(_) if segment.is_empty() => return None,
            Some(name) => {
                let decoded = percent_encoding::percent_decode_str(segment)
                    .decode_utf8()
                    .ok()?;
                out.push((name, decoded.into_owned()));
            }
            None if wanted == segment => {}
            None => return None,
        }
    }
    given.next().is_none().then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_found_by_its_own_path_and_method() {
        for route in ROUTES {
            let path = route.path.replace('{', "x-").replace('}', "");
            match find(route.method, &path) {
                Found::Route(found, _) => assert_eq!(found.operation, route.operation),
                other => panic!("{} {}: {other:?}", route.method, route.path),
            }
        }
    }

    #[test]
    fn another_method_names_those_there_are_and_another_path_is_none() {
        match find("DELETE", "/v1/nodes/n/reservations") {
            Found::WrongMethod(allowed) => assert_eq!(allowed, ["POST", "GET"]),
            other => panic!("{other:?}"),
        }
        for path in [
            "/",
            "/v1",
            "/v1/nodes/",
            "/v1/nodes/n/",
            "/v1/nodes/n/reservations/r/x",
        ] {
            assert!(matches!(find("GET", path), Found::NoPath), "{path}");
        }
    }

    #[test]
    fn parameters_are_decoded() {
        match find("GET", "/v1/vms/a%3Ab") {
            Found::Route(_, parameters) => assert_eq!(parameters, [("id", "a:b".to_owned())]),
            other => panic!("{other:?}"),
        }
    }
}
