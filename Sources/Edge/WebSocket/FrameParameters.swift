import Base
import Coaty
import Feeds
import Network

/// Parameters in a client frame.
struct FrameParameters: ClientParameters {
    let frame: JSONView
    let limits: Limits

    func text(_ name: String) throws -> String? {
        guard let view = frame.member(named: name) else { return nil }
        guard let text = view.string else { throw view.invalid("must be a string") }
        return text
    }

    func integer(_ name: String, in range: ClosedRange<Int>) throws -> Int? {
        try frame.member(named: name)?.integer(in: range)
    }

    func milliseconds(_ name: String, in range: ClosedRange<Int>) throws -> Int? {
        try frame.member(named: name)?.milliseconds(in: range)
    }

    func boolean(_ name: String) throws -> Bool? {
        guard let view = frame.member(named: name) else { return nil }
        guard let value = view.bool else { throw view.invalid("must be true or false") }
        return value
    }

    func condition(_ name: String) throws -> ClientCondition? {
        try frame.member(named: name).map { view in try ClientCondition(view, limits: limits) }
    }

    func texts(_ name: String) throws -> [String]? {
        guard let view = frame.member(named: name) else { return nil }
        guard view.kind == .array else { throw view.invalid("must be an array") }
        return try view.elements.map { element in
            guard let text = element.string else { throw element.invalid("must be a string") }
            return text
        }
    }

    func properties(_ name: String) throws -> [ObjectFilterProperty]? {
        guard let view = frame.member(named: name) else { return nil }
        guard view.kind == .array else { throw view.invalid("must be an array") }
        return try view.elements.map { try ObjectFilterProperty($0) }
    }

    func invalid(_ name: String, _ reason: String) -> any Error {
        PayloadError.invalid(pointer: "/" + name, reason: reason)
    }
}
