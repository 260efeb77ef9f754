import ArgumentParser
import Foundation

/// Why a client command fails, and its exit code.
enum Failure: Error, CustomStringConvertible {
    /// The gateway, or the agent that was called, refused the request.
    case refused(String)
    /// No agent responded in time.
    case noResponse
    /// The gateway can't be reached.
    case unreachable(url: String, reason: String)

    var description: String {
        switch self {
        case .refused(let reason): reason
        case .noResponse: "no agent responded in time"
        case .unreachable(let url, let reason): "\(url): \(reason)"
        }
    }

    private var code: ExitCode {
        switch self {
        case .refused: ExitCode(1)
        case .noResponse: ExitCode(3)
        // EX_UNAVAILABLE of sysexits.h.
        case .unreachable: ExitCode(69)
        }
    }

    static let exitCodes = """
        EXIT CODES:
          0   success
          1   the gateway or the agent refused the request
          3   no agent responded in time
          64  invalid arguments
          69  the gateway can't be reached
        """

    /// Runs the work of a command; prints its failure, and exits with the code.
    static func reported(_ work: () throws -> Void) throws {
        do {
            try work()
        } catch let failure as Failure {
            Output.report("\(failure)")
            throw failure.code
        }
    }
}

/// Lines on standard output, each written at once, and on standard error.
enum Output {
    static func line(_ bytes: some Sequence<UInt8>) {
        var line = Data(bytes)
        line.append(UInt8(ascii: "\n"))
        write(line, to: .standardOutput)
    }

    static func report(_ text: String) {
        write(Data("coaty-gateway: \(text)\n".utf8), to: .standardError)
    }

    /// Ends the command if the reader is gone: nothing that follows would be read either.
    private static func write(_ data: Data, to file: FileHandle) {
        do {
            try file.write(contentsOf: data)
        } catch {
            exit(1)
        }
    }
}
