import Coaty

extension JSONView {
    func invalid(_ reason: String) -> PayloadError { .invalid(pointer: pointer, reason: reason) }

    /// Checks that this is an object with no other members than these: what is misspelt must not be lost in silence.
    func refuseMembers(besides names: Set<String>) throws(PayloadError) {
        guard kind == .object else { throw invalid("must be an object") }
        for (key, value) in members where !names.contains(key.string ?? "") {
            throw value.invalid("is unknown; there are \(names.sorted().joined(separator: ", "))")
        }
    }
}
