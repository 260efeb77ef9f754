import HTTPServer

/// Suggests a path in place of one that leads to nothing.
struct NearPaths: Sendable {
    /// Longer paths get no suggestion, because a 404 must not take much work.
    private static let maximumLength = 256
    private static let maximumSegments = 8
    /// Parameters whose values may contain a slash, and what they are.
    private static let slashed = ["topic": "a topic", "objectId": "an id"]
    private static let unslashed: Set = ["channelId", "operation"]
    private static let version = "v1"

    /// A way to read a path as one that a template describes.
    private struct Reading {
        let path: String
        let errors: Int
    }

    /// The segments of each template.
    private let templates: [[String]]

    init(_ templates: Set<String>) { self.templates = templates.sorted().map(Self.segments) }

    /// Returns the detail of a 404 for a path as it was sent.
    func detail(for path: String) -> String {
        "There is nothing at \(Problems.short(path)).\(advice(for: path).map { " \($0)" } ?? "")"
    }

    private func advice(for path: String) -> String? {
        let segments = Self.segments(of: path)
        guard path.utf8.count <= Self.maximumLength, 1...Self.maximumSegments ~= segments.count else { return nil }
        let paths = segments.first == Self.version ? [segments] : [segments, [Self.version] + segments]
        let readings = paths.flatMap { path in templates.compactMap { reading(path, as: $0) } }
        if let best = readings.min(by: { $0.errors < $1.errors }) { return "Did you mean \(best.path)?" }
        // The template with the most segments is the most like it.
        return templates.sorted { $0.count > $1.count }.lazy.compactMap { slashAdvice(segments, as: $0) }.first
    }

    /// Reads a path as that of a template with as many segments, or with one more, which is a parameter.
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

    /// Reads several segments of a path as the value of the template's parameter.
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

    /// The name of a segment `{name}`; nil for another segment.
    private static func parameter(_ segment: String?) -> String? {
        guard let segment, segment.hasPrefix("{") else { return nil }
        return String(segment.dropFirst().dropLast())
    }

    /// Leaves out empty segments: slashes at the end or in a row are errors that a suggestion mends.
    private static func segments(of path: String) -> [String] {
        path.split(separator: "/").map(String.init)
    }
}

extension Problems {
    /// - Parameter name: the event that the path of a stream names.
    static func unknownEvent(_ name: String) -> Problem {
        let known = Observation.Event.allCases.map(\.rawValue)
        let question = NearestName.of(name, among: known).map { " Did you mean \($0)?" } ?? ""
        let reason = name.isEmpty ? "The path names no event." : "There is no event \(short(name)).\(question)"
        return notFound(detail: "\(reason) The events are \(known.joined(separator: ", ")).")
    }
}
