import CLibFuzzer
import Synchronization

@testable import Coaty
@testable import CoatyMQTT

// libFuzzer's own main can't be the program's: the package manager gives that its own name.
@main
struct InboundFuzzer {
    static func main() {
        var argc = CommandLine.argc
        var argv: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
        _ = LLVMFuzzerRunDriver(&argc, &argv) { takeInput($0, $1) }
    }
}

/// Takes a topic, a line feed and a payload that libFuzzer has made, and hands them to an agent that observes everything
/// and decodes what it gets.
@_cdecl("LLVMFuzzerTestOneInput")
public func takeInput(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    Agent.shared.receive(UnsafeBufferPointer(start: data, count: size))
    return 0
}

/// An agent whose connection the fuzzer drives.
private final class Agent: Sendable {
    static let shared = Agent()

    private let manager: CommunicationManager
    private let observations: [Subscription]
    private let binding = IdleBinding()
    private let subscriptions: Mutex<MQTTSubscriptions>

    private init() {
        let binding = binding
        do {
            manager = try CommunicationManager(
                identity: Identity(name: "Fuzzed"),
                ioNodes: [
                    IoNode(
                        name: "c",
                        ioSources: [IoSource(valueType: "v", name: "s", objectId: CoatyUUID(wire: "s"))],
                        ioActors: [IoActor(valueType: "v", name: "a", objectId: CoatyUUID(wire: "a"))]
                    )
                ],
                options: CommunicationOptions(shouldEnableCrossNamespacing: true) { _ in binding }
            )
            observations = try Self.observeEverything(manager)
        } catch {
            preconditionFailure("the fuzzer's own agent is not valid: \(error)")
        }
        manager.start()
        guard let session = binding.session else { preconditionFailure("a start joins at once") }
        subscriptions = Mutex(MQTTSubscriptions(topics: MQTTTopics(session, .slashes), filtersPerPacket: 8))
        session.connected()
    }

    func receive(_ input: UnsafeBufferPointer<UInt8>) {
        let end = input.firstIndex(of: UInt8(ascii: "\n")) ?? input.endIndex
        let topic = String(decoding: input[..<end], as: UTF8.self)
        guard let session = binding.session else { return }
        subscriptions.withLock(\.self).receive(topic, Array(input[min(end + 1, input.endIndex)...]), for: session)
        // Answers are thrown away, as if the broker took them.
        while let operation = session.nextOperation() {
            switch operation {
            case .publish: session.publicationWritten()
            case .subscribe(let requests): subscriptions.withLock { _ = $0.add(requests) }
            case .unsubscribe(let selector): subscriptions.withLock { _ = $0.remove(selector) }
            case .disconnect: break
            }
        }
    }

    private static func observeEverything(_ manager: CommunicationManager) throws -> [Subscription] {
        let correlationId = CoatyUUID(wire: "r")
        var observations = CoreType.allCases.flatMap { coreType in
            [
                manager.subscribe(
                    .advertise(withCoreType: coreType),
                    handler: trying { [try $0.data.object.json, $0.data.privateData] }
                ),
                manager.subscribe(
                    .update(withCoreType: coreType),
                    handler: trying { [try $0.complete(.with(object: $0.data.object))] }
                ),
            ]
        }
        observations += [
            try manager.subscribe(.advertise(withObjectType: "t"), handler: trying { [try $0.data.object.json] }),
            manager.subscribe(.deadvertise, handler: trying { [$0.data.objectIds] }),
            try manager.subscribe(
                .channel("c"),
                handler: trying { [try $0.data.object?.json, try $0.data.objects?.map { try $0.json }] }
            ),
            manager.subscribe(.discover, handler: trying { [$0.data] }),
            manager.subscribe(
                .query,
                handler: trying {
                    let filter = $0.data.objectFilter
                    return [$0.data.objectJoinConditions, try PayloadCoder.encode(filter)]
                }
            ),
            try manager.subscribe(
                .call(operation: "o", context: Identity(name: "context")),
                handler: trying {
                    let parameter = $0.data.getParameterByIndex(index: 0) ?? .null
                    return [$0.data.parameterDictionary, try $0.returnEvent(.with(result: parameter))]
                }
            ),
            try manager.subscribe(rawTopic: "#", handler: trying { [$0.payload] }),
            manager.subscribe(ioStateOf: CoatyUUID(wire: "s"), handler: trying { [$0] }),
            manager.subscribe(ioValuesOf: CoatyUUID(wire: "a"), handler: trying { [$0.value] }),
            manager.subscribe(
                responsesTo: correlationId,
                onEnd: nil,
                handler: trying { (event: ResolveEvent) in
                    [try event.data.object?.json, try event.data.relatedObjects?.map { try $0.json }]
                }
            ),
            manager.subscribe(
                responsesTo: correlationId,
                onEnd: nil,
                handler: trying { (event: RetrieveEvent) in try event.data.objects.map { try $0.json } }
            ),
            manager.subscribe(
                responsesTo: correlationId,
                onEnd: nil,
                handler: trying { (event: CompleteEvent) in [try event.data.object.json] }
            ),
            manager.subscribe(
                responsesTo: correlationId,
                onEnd: nil,
                handler: trying { (event: ReturnEvent) in
                    [event.data.result, event.data.error, event.data.executionInfo]
                }
            ),
        ]
        return observations
    }
}

/// Evaluates what is asked of an event; an error is a fine answer to a hostile input.
private func trying<Event>(_ body: @escaping @Sendable (Event) throws -> [Any?]) -> @Sendable (Event) -> Void {
    { event in _ = try? body(event) }
}

/// Leaves everything to the fuzzer.
private final class IdleBinding: Binding {
    private let joined = Mutex<BindingSession?>(nil)

    var session: BindingSession? { joined.withLock(\.self) }

    func join(_ session: BindingSession) { joined.withLock { $0 = session } }
    func wake() {}
    func leave() async {}
    func ioRoute(ofSource id: CoatyUUID, namespace: String) -> String {
        MQTTTopic.topic(of: EventAddress(.ioValue, namespace: namespace, sourceId: id))
    }
    func isIoRoute(_ route: String) -> Bool { MQTTTopic.isIoRoute(route) }
    func isPublishable(rawTopic: String) -> Bool { MQTTTopic.isPublishable(rawTopic) }
    func isObservable(rawTopicFilter: String) -> Bool { MQTTTopic.isObservable(rawTopicFilter) }
}
