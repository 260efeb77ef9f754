import Coaty
import ExampleSupport

/// A controller that measures in bursts, and passes each value to all sources. Bursts are faster than the update rate,
/// so `Sample` skips values; in the pause between bursts, `Throttle` publishes the last value.
final class MeasuringController: Controller {
    static let valuesInABurst = 6

    override func onCommunicationManagerStarting() {
        super.onCommunicationManagerStarting()
        guard let controller: IoSourceController = container.getController(name: "IoSourceController"),
            let sources = options.extra["sources"] as? [IoSource],
            let updateRate = options.extra["updateRate"] as? Int
        else { return }
        for source in sources {
            Task {
                for await isAssociated in controller.observeAssociation(source: source) {
                    Agent.say("\(source.name) is \(isAssociated ? "associated" : "not associated")")
                }
            }
            .disposed(by: disposeBag)
        }
        Task {
            for number in 0... {
                let outcomes = try zip(1..., sources).map { tens, source in
                    // The first source has values from 10.0 to 19.9, the second from 20.0 to 29.9, and so on.
                    let celsius = Double(tens * 100 + number % 100) / 10
                    let outcome = try controller.publish(source: source, value: AnyCodable(celsius))
                    return "\(celsius) °C \(word(for: outcome))"
                }
                Agent.say(outcomes.joined(separator: ", "))
                let isLastOfBurst = number % Self.valuesInABurst == Self.valuesInABurst - 1
                try await Task.sleep(for: .milliseconds(isLastOfBurst ? updateRate * 6 / 5 : updateRate / 5))
            }
        }
        .disposed(by: disposeBag)
    }

    private func word(for outcome: IoSourcePublisher.Outcome) -> String {
        switch outcome {
        case .published: "published"
        case .pending: "waits"
        case .discarded: "discarded"
        }
    }
}
