import Access
import Base
import Gate
import HTTPServer

/// `/v1/admin`: administration of the running gateway.
struct AdminResource: Sendable {
    let gate: Gate

    func register(in router: inout GatewayRouter) {
        router.on(.post, "/v1/admin/pause") { _, principal in set(true, principal) }
        router.on(.post, "/v1/admin/resume") { _, principal in set(false, principal) }
        router.on(.post, "/v1/admin/reload") { _, principal in
            .awaiting {
                let names = try await gate.perform(ReloadConfiguration(), by: principal)
                var json = Array(#"{"changed":"#.utf8)
                JSONText.appendArray(names, to: &json) { JSONText.append($0, to: &$1) }
                return .json(json + [UInt8(ascii: "}")])
            }
        }
        router.on(.get, "/v1/admin/tree") { _, principal in
            .performing {
                var json: [UInt8] = []
                try gate.perform(ReadTree(), by: principal).append(to: &json)
                return .json(json)
            }
        }
    }

    private func set(_ isPaused: Bool, _ principal: Principal) -> HTTPReply {
        .awaiting {
            let pending = try await gate.perform(SetPaused(isPaused: isPaused), by: principal)
            return .json(
                Array(#"{"state":"\#(isPaused ? "paused" : "active")","pendingRequests":\#(pending)}"#.utf8)
            )
        }
    }
}
