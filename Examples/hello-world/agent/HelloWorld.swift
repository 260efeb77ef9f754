import Coaty
import CoatyMQTT
import ExampleSupport
import Foundation

/// A small agent that advertises a job per second, and answers Discover events for jobs.
@main
struct HelloWorld {
    static let objectType = "com.example.Job"

    static func main() async throws {
        let broker = ProcessInfo.processInfo.environment["COATY_BROKER"] ?? "mqtt://localhost:1883"
        let manager = try CommunicationManager(
            identity: Identity(name: "Hello World"),
            options: CommunicationOptions(mqttClientOptions: MQTTClientOptions(url: broker))
        )
        manager.start()
        for await state in manager.getCommunicationState() where state == .online { break }
        print("hello-world is online at \(broker.split(separator: "@").last ?? "")")

        let answering = Task {
            for await event in manager.observeDiscover() where isAsking(for: event.data) {
                report { try event.resolve(.with(object: job(number: 0, of: manager))) }
            }
        }
        let advertising = Task {
            for number in 1... {
                report { try manager.publishAdvertise(.with(object: job(number: number, of: manager))) }
                try await Task.sleep(for: .seconds(1))
            }
        }
        await Agent.untilTerminated()
        advertising.cancel()
        answering.cancel()
        await manager.stop()
    }

    private static func isAsking(for asked: DiscoverEventData) -> Bool {
        asked.isDiscoveringTypes() && asked.isObjectTypeCompatible(objectType)
    }

    /// Reports an error instead of ending the agent, because publishing may fail temporarily.
    private static func report(_ publish: () throws -> Delivery) {
        do {
            _ = try publish()
        } catch {
            print("not published: \(error)")
        }
    }

    private static func job(number: Int, of manager: CommunicationManager) -> CoatyTask {
        CoatyTask(
            creatorId: manager.identityId,
            creationTimestamp: .nowMillis(),
            status: .request,
            name: "Job \(number)",
            objectType: objectType
        )
    }
}
