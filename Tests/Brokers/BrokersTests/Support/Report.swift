import Foundation
import Synchronization

/// The measured times and tables of a run, as Markdown: immediately on standard output, and in the file that
/// `COATY_BROKERS_REPORT` names.
enum Report {
    private static let sections = Mutex<[(title: String, lines: [String])]>([])

    /// Adds an item to a section.
    static func add(_ line: String, to section: String) { append("- \(line)", to: section, header: []) }

    /// Adds a row to the table of a section.
    static func add(row cells: [String], columns: [String], to section: String) {
        let header = [Self.row(columns), Self.row(columns.map { _ in "---" })]
        append(row(cells), to: section, header: header)
    }

    /// Formats seconds with two decimals.
    static func seconds(_ value: Double) -> String { String(format: "%.2f s", value) }

    private static func row(_ cells: [String]) -> String {
        let escaped = cells.map { $0.replacing("|", with: #"\|"#).replacing("\n", with: " ") }
        return "| \(escaped.joined(separator: " | ")) |"
    }

    private static func append(_ line: String, to section: String, header: [String]) {
        print("\(section): \(line)")
        sections.withLock { sections in
            if let index = sections.firstIndex(where: { $0.title == section }) {
                sections[index].lines.append(line)
            } else {
                sections.append((section, header + [line]))
            }
            guard let file = Bench.reportFile else { return }
            let text = sections.map { "## \($0.title)\n\n\($0.lines.joined(separator: "\n"))\n" }
                .joined(separator: "\n")
            do {
                try text.write(toFile: file, atomically: true, encoding: .utf8)
            } catch {
                print("the report can't be written: \(error)")
            }
        }
    }
}
