"""The namespace of the gateway, and the hint at agents in other namespaces."""

from browser import ConsoleCase
from stack import eventually


class NamespaceTests(ConsoleCase):
    @classmethod
    def begin(cls):
        cls.broker = cls.stack.broker()
        cls.gateway = cls.stack.gateway(cls.broker, "--namespace", "com.example.home")

    def test_namespace_is_shown(self):
        self.browser.wait_for_text("Namespace com.example.home", "header")

    def test_agents_of_other_namespaces_are_hinted_at(self):
        browser = self.browser
        agents = []

        def is_counted():
            agents.append(self.stack.agent(self.broker, "com.helloworld"))
            return self.gateway.curl("GET", "/v1/status")["otherNamespaces"]

        # The session that observes other namespaces starts later than the gateway.
        counted = eventually("the agents are counted", is_counted)[0]["agents"]
        agents_text, them = ("1 agent", "it") if counted == 1 else (f"{counted} agents", "them")
        text = f"{agents_text} in com.helloworld. To see {them}, start a gateway with --namespace com.helloworld."
        browser.wait_for_text(text)
        browser.go("Agents & objects")
        browser.wait_for_text(text)
        for agent in agents:
            agent.stop()
        browser.wait("the hint is gone", "return all('.namespace-hint').length === 0")
        self.stack.agent(self.broker, "com.helloworld")
        browser.wait_for_text("1 agent in com.helloworld")
        browser.press("Hide")
        browser.wait("the hint is hidden", "return all('.namespace-hint').length === 0")
