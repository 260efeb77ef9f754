import TestSupport

@testable import CoatyTestSupport

extension SteeredClock {
    func advance(byMilliseconds milliseconds: Int) { advance(by: .milliseconds(milliseconds)) }

    /// Waits until tasks sleep with these deadlines, in milliseconds.
    func untilSleeping(untilMilliseconds deadlines: Int...) async throws {
        try await withPatience { [self] in
            while self.deadlines != deadlines.map({ .milliseconds($0) }) { try await Task.sleep(for: .milliseconds(1)) }
        }
    }
}
