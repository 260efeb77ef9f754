import Base
import Coaty
import Gate
import HTTPServer

/// `GET /v1/info`: version, identity, namespace and broker of the gateway.
struct InfoResource: Sendable {
    let gate: Gate
    /// The broker's address, without credentials.
    let brokerAddress: String
    let isBrokerEmbedded: Bool

    func register(in router: inout GatewayRouter) {
        router.on(.get, "/v1/info") { _, principal in
            .performing { .json(json(try gate.perform(ReadInfo(), by: principal))) }
        }
    }

    private func json(_ info: ReadInfo.Outcome) -> [UInt8] {
        var json = Array(#"{"name":"coaty-gateway","version":"\#(GatewayVersion.text)","identity":"#.utf8)
        json += info.identity
        json += #","namespace":"#.utf8
        JSONText.append(info.namespace, to: &json)
        json += #","broker":{"address":"#.utf8
        JSONText.append(brokerAddress, to: &json)
        let state: CommunicationState = info.isOnline ? .online : .offline
        json += #","state":"\#(state.rawValue)","embedded":\#(isBrokerEmbedded)}}"#.utf8
        return json
    }
}
