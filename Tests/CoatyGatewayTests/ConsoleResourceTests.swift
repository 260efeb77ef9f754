import CEmbedded
import Foundation
import TestSupport
import Testing

@testable import Edge

@Suite(.exclusive) struct ConsoleResourceTests {
    @Test func hasEachFileOfTheFolderAsItIs() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Sources/CoatyGateway/Console")
        // The package that `npm pack` makes of the client module has these files, too.
        let ofPackage: Set = ["README.md", "package.json"]
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            .filter { !$0.hasPrefix(".") && !ofPackage.contains($0) }
        var texts: [String: Data] = [:]
        var index: Int32 = 0
        while let file = embedded_console_file(index)?.pointee {
            index += 1
            texts[String(cString: file.name)] = Data(String(cString: file.text).utf8)
        }
        #expect(Set(names) == Set(texts.keys), "embedded.c has a table of the files")
        #expect(Set(names) == Set(ConsoleResource().files.keys), "ConsoleResource.swift has a table of media types")
        for name in names { #expect(try Data(contentsOf: folder.appending(path: name)) == texts[name], "\(name)") }
        #expect(embedded_console_file(-1) == nil)
    }

    @Test func hasTheContractAsItIs() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../openapi.yaml")
        #expect(try [UInt8](Data(contentsOf: file)) == ContractResource.text)
    }
}
