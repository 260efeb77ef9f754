import Coaty
import Foundation
import Logging

/// The demo's dynamic objects: a thermometer, a light that can be switched, and a display of the values that are routed
/// to it.
final class DemoGreenhouse: ObjectLifecycleController {
    private let thermometer = DemoGreenhouse.object("Thermometer", "Demo thermometer")
    private let lightObject = DemoGreenhouse.object("Light", "Demo light")
    private let display = DemoGreenhouse.object("Display", "Demo display")
    private var light = DemoLight()
    private var objects: [CoatyObject] { [thermometer, lightObject, display] }

    private static func object(_ type: String, _ name: String) -> CoatyObject {
        CoatyObject(coreType: .CoatyObject, objectType: "com.example.demo.\(type)", objectId: .init(), name: name)
    }

    override func onCommunicationManagerStarting() {
        super.onCommunicationManagerStarting()
        thermometer.custom = ["temperature": .double(temperature(at: 0)), "unit": "Celsius"]
        lightObject.custom = light.properties
        Task {
            let calls = try communicationManager.observeCall(operation: DemoLight.operation)
            let queries = communicationManager.observeQuery()
            for object in objects { try advertiseDiscoverableObject(object: object).disposed(by: disposeBag) }
            await withTaskGroup { group in
                group.addTask { [self] in await answer(calls) }
                group.addTask { [self] in await answer(queries) }
                group.addTask { [self] in await live() }
            }
        }
        .disposed(by: disposeBag)
    }

    // MARK: - Answering

    private func answer(_ calls: EventStream<CallEvent>) async {
        for await call in calls {
            let info: AnyCodable = ["lightId": .init(lightObject.objectId)]
            let outcome = Result { () throws(ReturnError) in try light.perform(call.data) }
            attempt {
                switch outcome {
                case .success(let state): try call.returnEvent(.with(result: state, executionInfo: info))
                case .failure(let error): try call.returnEvent(.with(error: error, executionInfo: info))
                }
            }
            show(lightObject, light.properties)
        }
    }

    private func answer(_ queries: EventStream<QueryEvent>) async {
        for await query in queries {
            attempt {
                if let answer = try query.answer(from: objects) { try query.retrieve(answer) }
            }
        }
    }

    // MARK: - Changing

    private func live() async {
        guard let points = options.extra["points"] as? DemoPoints,
            let sources: IoSourceController = container.getController(name: "sources"),
            let actors: IoActorController = container.getController(name: "actors")
        else { return }
        for second in 1... {
            guard (try? await Task.sleep(for: .seconds(1))) != nil else { return }
            let degrees = AnyCodable.double(temperature(at: second))
            show(thermometer, ["temperature": degrees])
            attempt { try sources.publish(source: points.temperature, value: degrees) }
            if second % 2 == 0 {
                light.run(seconds: 2)
                show(lightObject, light.properties)
                attempt { try sources.publish(source: points.humidity, value: .double(humidity(at: second))) }
            }
            // Returns the latest value of an actor, if values are routed to it.
            func latest(_ actor: IoActor) -> AnyCodable {
                actors.isAssociated(actor: actor) ? actors.getIoValue(actor: actor) ?? .null : .null
            }
            show(
                display,
                [
                    "day": latest(points.dayDisplay), "night": latest(points.nightDisplay),
                    "humidity": latest(points.humidityDisplay),
                ]
            )
        }
    }

    /// Advertises an object with changed properties. Without a connection, nothing is queued, because only the latest
    /// state matters.
    private func show(_ object: CoatyObject, _ properties: [String: AnyCodable]) {
        object.custom.merge(properties) { $1 }
        guard communicationManager.isConnected else { return }
        attempt { try readvertiseDiscoverableObject(object: object) }
    }

    /// Ignores errors of publishing, for example when the connection is lost, so that the demo continues.
    private func attempt(_ publish: () throws -> Void) {
        do {
            try publish()
        } catch {
            container.logger.debug("a demo event was not published", metadata: ["error": "\(error)"])
        }
    }

    private func temperature(at second: Int) -> Double { ((21 + 3 * sin(Double(second) / 20)) * 10).rounded() / 10 }

    private func humidity(at second: Int) -> Double { (60 + 10 * cos(Double(second) / 30)).rounded() }
}
