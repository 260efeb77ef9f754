/// Finds the known name that a misspelled name most likely means.
public enum NearestName {
    /// Maximum length of a name. Longer names are not compared, because the work grows with the product of the lengths.
    private static let maximumLength = 64
    /// Maximum number of typing errors.
    private static let maximumErrors = 3

    /// Returns the known name with the fewest typing errors; nil if none is close. Case is ignored.
    package static func of(_ name: String, among known: some Sequence<String>) -> String? {
        guard let name = comparable(name) else { return nil }
        var nearest: (name: String, errors: Int)?
        for candidate in known.sorted() {
            guard let other = comparable(candidate) else { continue }
            let errors = errors(name, other)
            // Short names of the same length are similar by chance.
            guard errors <= min(maximumErrors, max(name.count, other.count) / 3) else { continue }
            if errors < nearest?.errors ?? .max { nearest = (candidate, errors) }
        }
        return nearest?.name
    }

    /// Returns the reason for refusing a name: the nearest of the known names, and all of them.
    public static func refusal(of name: String, known: some Collection<String>) -> String {
        let question = of(name, among: known).map { "; did you mean \($0)?" } ?? "."
        return "is unknown\(question) Allowed: \(known.sorted().joined(separator: ", "))"
    }

    private static func comparable(_ name: String) -> [UInt8]? {
        guard name.utf8.count <= maximumLength else { return nil }
        return name.utf8.map { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0 ? $0 | 0x20 : $0 }
    }

    /// Returns the number of characters to insert, remove, replace or swap with their neighbour (optimal string
    /// alignment).
    private static func errors(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var (beforeLast, last) = ([Int](), Array(0...right.count))
        for row in 0..<left.count {
            var current = [row + 1]
            for column in 0..<right.count {
                let isSame = left[row] == right[column]
                var fewest = min(last[column] + (isSame ? 0 : 1), last[column + 1] + 1, current[column] + 1)
                if row > 0, column > 0, left[row] == right[column - 1], left[row - 1] == right[column] {
                    fewest = min(fewest, beforeLast[column - 1] + 1)
                }
                current.append(fewest)
            }
            (beforeLast, last) = (last, current)
        }
        return last[right.count]
    }
}
