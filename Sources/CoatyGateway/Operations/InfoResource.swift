import Coaty
import HTTPServer

/// `GET /v1/info`: version, identity, namespace and broker of the gateway.
struct InfoResource: Sendable {
    let manager: CommunicationManager
    /// The broker's address, without credentials.
    let brokerAddress: String
    let isBrokerEmbedded: Bool

    func register(in router: inout Router) {
        router.on(.get, "/v1/info") { _ in .response(.json(body)) }
    }

    private var body: [UInt8] {
        var json = Array(#"{"name":"coaty-gateway","version":"\#(Gateway.version)","identity":"#.utf8)
        json += manager.identityEvent.payload.json["object"]?.bytes ?? []
        json += #","namespace":"#.utf8
        JSONText.append(manager.namespace, to: &json)
        json += #","broker":{"address":"#.utf8
        JSONText.append(brokerAddress, to: &json)
        let state: CommunicationState = manager.isOnline ? .online : .offline
        json += #","state":"\#(state.rawValue)","embedded":\#(isBrokerEmbedded)}}"#.utf8
        return json
    }
}
