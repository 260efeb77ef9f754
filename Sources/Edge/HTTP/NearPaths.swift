import Base
import Feeds
import ProblemDetails

/// Suggests a registered path for an unknown one.
struct NearPaths: Sendable {
    /// Maximum length of a path that gets a suggestion, because a 404 must not take much work.
    private static let maximumLength = 256
    private static let maximumSegments = 8
    /// Parameters whose values may contain a slash, and their descriptions.
    private static let slashed = ["topic": "a topic", "objectId": "an id"]
    private static let unslashed: Set = ["channelId", "operation"]
    private static let version = "v1"

    /// An interpretation of a path by a template.
    private struct Reading {
        let path: String
        let errors: Int
    }

    /// The segments of each template.
    private let templates: [[String]]

    init(_ templates: Set<String>) { self.templates = templates.sorted().map(Self.segments) }

    /// Returns the detail of a 404 for a path as sent by the client.
    func detail(for path: String) -> String {
        "There is nothing at \(Problems.short(path)).\(advice(for: path).map { " \($0)" } ?? "")"
    }

    private func advice(for path: String) -> String? {
        let segments = Self.segments(of: path)
        guard path.utf8.count <= Self.maximumLength, 1...Self.maximumSegments ~= segments.count else { return nil }
        let paths = segments.first == Self.version ? [segments] : [segments, [Self.version] + segments]
        let readings = paths.flatMap { path in templates.compactMap { reading(path, as: $0) } }
        if let best = readings.min(by: { $0.errors < $1.errors }) { return "Did you mean \(best.path)?" }
        // The template with the most segments is the most similar.
        return templates.sorted { $0.count > $1.count }.lazy.compactMap { slashAdvice(segments, as: $0) }.first
    }

    /// Interprets a path by a template with the same number of segments, or with one more, which is a parameter.
    private func reading(_ path: [String], as template: [String]) -> Reading? {
        let isShort = template.count == path.count + 1 && Self.parameter(template.last) != nil
        guard template.count == path.count || isShort else { return nil }
        var (segments, errors) = ([String](), isShort ? 1 : 0)
        for (segment, part) in zip(path, template) {
            if Self.parameter(part) != nil {
                segments.append(segment)
            } else {
                if segment != part {
                    guard NearestName.of(segment, among: [part]) != nil else { return nil }
                    errors += 1
                }
                segments.append(part)
            }
        }
        if isShort, let last = template.last { segments.append(last) }
        return Reading(path: "/" + segments.joined(separator: "/"), errors: errors)
    }

    /// Interprets several segments of a path as the value of the template's parameter.
    private func slashAdvice(_ path: [String], as template: [String]) -> String? {
        guard path.count > template.count, let index = template.firstIndex(where: { Self.parameter($0) != nil }),
            let name = Self.parameter(template[index])
        else { return nil }
        let (start, end) = (template[..<index], template[(index + 1)...])
        guard path.starts(with: start), path.suffix(end.count).elementsEqual(end) else { return nil }
        if Self.unslashed.contains(name) { return "\(name) must not contain a slash." }
        guard let what = Self.slashed[name] else { return nil }
        let value = path[index..<(path.count - end.count)].joined(separator: "%2F")
        let escaped = "/" + (Array(start) + [value] + Array(end)).joined(separator: "/")
        return "A slash in \(what) is written as %2F: \(escaped)."
    }

    /// Returns the name of a segment `{name}`; nil for another segment.
    private static func parameter(_ segment: String?) -> String? {
        guard let segment, segment.hasPrefix("{") else { return nil }
        return String(segment.dropFirst().dropLast())
    }

    /// Returns the segments without empty ones: a suggestion corrects final and repeated slashes.
    private static func segments(of path: String) -> [String] {
        path.split(separator: "/").map(String.init)
    }
}

extension Problems {
    /// - Parameter name: the name of the event in the path of a stream.
    static func unknownEvent(_ name: String) -> Problem {
        let known = Observation.names
        let question = NearestName.of(name, among: known).map { " Did you mean \($0)?" } ?? ""
        let reason = name.isEmpty ? "The path names no event." : "There is no event \(short(name)).\(question)"
        return notFound(detail: "\(reason) The events are \(known.joined(separator: ", ")).")
    }
}
