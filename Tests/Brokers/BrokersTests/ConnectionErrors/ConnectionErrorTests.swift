import Coaty
import CoatyMQTT
import TestSupport
import Testing

/// The errors of agents that can't connect.
@Suite(.exclusive, .serialized, .needsBrokers, .timeLimit(.minutes(1))) struct ConnectionErrorTests {
    private static let section = "TLS and login failures"
    private static let columns = ["failure", "reason", "message", "after"]

    private func agent(_ options: MQTTClientOptions) throws -> CommunicationManager {
        try makeAgent(CommunicationOptions(mqttClientOptions: options))
    }

    @Test(arguments: FailureCase.all) func causeIsReported(_ failure: FailureCase) async throws {
        let setup = try await failure.setUp()
        let agent = try agent(setup.options)
        agent.start()
        let seconds = try await eventually("an error is reported") { agent.connectionError != nil }
        let error = try #require(agent.connectionError)
        #expect(error.reason == failure.reason)
        #expect(!error.message.isEmpty && !error.message.contains(FailureCase.secret))
        #expect(!agent.isOnline)
        await agent.stop()
        Report.add(
            row: [failure.name, error.reason.rawValue, error.message, Report.seconds(seconds)],
            columns: Self.columns,
            to: Self.section
        )
        withExtendedLifetime(setup) {}
    }

    /// The host 127.1 is an address for the system, but not for OpenSSL.
    @Test(arguments: [("127.0.0.1", "broker"), ("127.0.0.1", "127.0.0.1"), ("127.1", "broker"), ("::1", "::1")])
    func validCertificatesGiveNoError(host: String, certificate: String) async throws {
        var setup = try FailureCase.secured(
            certificate,
            listener: host == "::1" ? host : nil,
            client: ("client.pem", "client.key"),
            demandsCertificate: true
        )
        setup.options.host = host
        let agent = try agent(setup.options)
        agent.start()
        try await eventually("the agent is online", details: { "\(agent.connectionError?.message ?? "")" }) {
            agent.isOnline
        }
        #expect(agent.connectionError == nil)
        await agent.stop()
        withExtendedLifetime(setup) {}
    }

    @Test func errorIsClearedWhenAgentIsOnline() async throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        broker.kill()
        let agent = try agent(failingOptions(broker.port))
        agent.start()
        try await eventually("an error is reported") { agent.connectionError?.reason == .connectionRefused }
        try broker.restart()
        try await eventually("the agent is online") { agent.isOnline }
        #expect(agent.connectionError == nil)
        await agent.stop()
    }
}
