import Coaty
import Foundation

@testable import Access
@testable import Base

/// A naive evaluation of grants, written from their specification in at most 60 lines.
struct ReferencePolicy {
    let grants: [AnyCodable]
    let roots: [String: AnyCodable]

    func covers(_ grant: AnyCodable, _ asked: AccessCase) -> Bool {
        let (request, key, name, core) = (asked.request, asked.key, asked.name, asked.core)
        let (verb, list) = (request.verb, grant[request.verb.rawValue]?.texts ?? [])
        guard verb == .route ? !list.isEmpty : list.contains(request.pattern.rawValue) else { return false }
        if request.isOfOthers && grant["others"] == nil || request.isRetained && grant["retain"] == nil { return false }
        if verb == .publish, key == "types", name == nil, core == nil, grant["where"] != nil { return false }
        let isStrict = verb == .publish || verb == .request && request.pattern == .update
        let cores = !isStrict ? [] : ["Identity", "IoNode", "IoSource", "IoActor", "IoContext"]
        let reserved = cores.first { $0 == core } ?? cores.first { "coaty." + $0 == name }
        return (verb == .route ? list : key.map { grant[$0]?.texts ?? [] } ?? ["*"]).contains { entry in
            let plain = entry.replacing(#"\\"#, with: "\u{1}").replacing(#"\*"#, with: "\u{2}")
            let text = plain.replacing("*", with: "").replacing("\u{1}", with: #"\"#).replacing("\u{2}", with: "*")
            if key == "topics" { return name.map { covers(text, $0 == "#" ? "+/#" : $0) } ?? false }
            if core == entry || reserved != nil { return (reserved ?? core) == entry }
            return plain.hasSuffix("*") ? text.isEmpty || name?.hasPrefix(text) == true : text == name
        }
    }
    /// Replaces wildcards in the wanted filter by levels that no grant contains, and tests the resulting topics.
    private func covers(_ filter: String, _ wanted: String) -> Bool {
        (0...5).map { String(repeating: "/~", count: $0) }.allSatisfy {
            let names = wanted.replacing("/#", with: $0).replacing("+", with: "~").components(separatedBy: "/")
            let levels = filter.components(separatedBy: "/").filter { $0 != "#" }
            if names[0].hasPrefix("$"), filter.hasPrefix("+") || filter.hasPrefix("#") { return false }
            let fits = filter.hasSuffix("#") ? levels.count <= names.count : levels.count == names.count
            return fits && zip(levels, names).allSatisfy { $0 == "+" || $0 == $1 }
        }
    }
    /// Returns 1 for true, -1 for false, and 0 for unknown.
    func truth(_ condition: AnyCodable) -> Int {
        if let parts = condition["and"]?.array { return parts.map(truth).min() ?? 1 }
        if let parts = condition["or"]?.array { return parts.map(truth).max() ?? -1 }
        if let part = condition["not"] { return -truth(part) }
        guard let path = condition[0]?.text, let test = condition[1], let name = test[0]?.text else { return 0 }
        let (left, isNot) = (value(path), name.hasPrefix("Not"))
        let isOpen = path.hasPrefix("principal.") || roots[String(path.prefix { $0 != "." })] == nil
        if name.hasSuffix("Exists") { return left == nil && isOpen ? 0 : (left == nil) == isNot ? 1 : -1 }
        guard let left, let right = test[1]?["property"]?.text.map(value) ?? test[1] else { return 0 }
        switch (name.replacing("Not", with: ""), left, right) {
        case ("Contains", .array(let list), _): return list.contains(right) != isNot ? 1 : -1
        case ("In", _, .array(let list)): return list.contains(left) != isNot ? 1 : -1
        case ("Equals", _, _), ("Contains", _, _): return (left == right) != isNot ? 1 : -1
        case ("LessThan", .integer(let left), .integer(let right)): return left < right ? 1 : -1
        default: return 0
        }
    }
    private func value(_ path: String) -> AnyCodable? {
        let own = ["principal.name", "principal.roles", "principal.attributes"].contains { path.hasPrefix($0) }
        let path = own ? path : path.replacing("principal.", with: "principal.attributes.")
        return path.split(separator: ".").reduce(.object(roots)) { $0?[String($1)] }
    }
}
