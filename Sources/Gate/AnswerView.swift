import Access
import Base
import Coaty
import Synchronization

/// The part of the answers to a request that the client may see. It changes with the access policy while the request is
/// pending.
final class AnswerView: Sendable {
    private let view: Mutex<AccessView?>

    init(_ view: AccessView?) { self.view = Mutex(view) }

    func change(_ view: AccessView?) { self.view.withLock { $0 = view } }

    /// Whether answers are checked.
    var isRestricted: Bool { view.withLock { $0 != nil } }

    /// Returns the visible part of an answer: its payload without the objects that the client must not see; nil if
    /// nothing is visible. Hiding an answer entirely because of one object would reveal that this object matches.
    func visible(_ payload: Payload, of pattern: AccessPattern) -> Payload? {
        guard let view = view.withLock(\.self) else { return payload }
        func isVisible(_ object: JSONView) -> Bool { view.allows(AccessRequest.objects(.request, pattern, [object])) }
        let objects = payload.allObjects
        if !objects.isEmpty, objects.allSatisfy(isVisible) { return payload }
        if let object = payload.json["object"], !isVisible(object) { return nil }
        var json = Array("{".utf8)
        for (key, value) in payload.json.members {
            // Only objects can be checked.
            guard let name = key.string, ["object", "objects", "relatedObjects"].contains(name) else { continue }
            if json.count > 1 { json.append(UInt8(ascii: ",")) }
            json += key.bytes + ":".utf8
            if value.kind == .array {
                JSONText.appendArray(value.elements.filter(isVisible), to: &json) { $1 += $0.bytes }
            } else {
                json += value.bytes
            }
        }
        guard let part = try? Payload(json + "}".utf8), !part.allObjects.isEmpty else { return nil }
        return part
    }
}
