/// What a principal may see of a stream of events or answers.
struct AccessView: Sendable, Equatable {
    let permissions: Permissions

    /// Returns whether everything that an event or answer needs is allowed. Nothing to judge is not allowed.
    func allows(_ requests: [AccessRequest]) -> Bool {
        !requests.isEmpty && requests.allSatisfy { permissions.decide($0).denial == nil }
    }

    static func == (left: AccessView, right: AccessView) -> Bool { left.permissions === right.permissions }
}
