import Coaty
import TestSupport
import Testing

/// The example of the question about clashing names: this file declares types with the names of the library's types.
@Suite(.exclusive) struct ClashingNamesTests {
    @Test func theModuleNameDistinguishesTypes() throws {
        var options = CommonOptions()
        associate(User(mail: "ann@example.com"), with: &options)
        #expect(options.associatedUser?.name == "ann@example.com")

        let type: Coaty.Location.Type = Coaty.Location.self
        #expect(type.objectType == "coaty.Location" && Location(name: "here").name == "here")
        #expect(throws: ConfigurationError.noCommunication) { try Coaty.Configuration.build { _ in } }
        let binding: any Coaty.Binding = InMemoryBinding(broker: InMemoryBroker())
        #expect(Configuration(binding: Binding(value: 1)).binding.value == 1 && binding.isIoRoute("r"))
        let value: Coaty.AnyCodable = ["a": 1]
        #expect(value == ["a": 1] && AnyCodable().isMine)
    }

    #if compiler(>=6.3)
        @Test func moduleSelectorsDistinguishTypes() {
            let value: Coaty::AnyCodable = ["a": 1]
            #expect(value == ["a": 1])
        }
    #endif

    private func associate(_ user: User, with options: inout CommonOptions) {
        options.associatedUser = Coaty.User(name: user.mail, names: ScimUserNames())
    }
}

private struct User { var mail: String }
private struct Location { var name: String }
private struct Configuration { var binding: Binding<Int> }
private struct Binding<Value> { var value: Value }
private struct AnyCodable { var isMine = true }
