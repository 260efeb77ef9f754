import assert from "node:assert/strict"
import test from "node:test"
import { hintText } from "../../../Sources/CoatyGateway/Console/namespaces.js"

test("the text names the namespaces of agents and how to observe them", () => {
  assert.equal(hintText(), undefined)
  assert.equal(hintText([]), undefined)
  assert.equal(hintText([{ namespace: "com.helloworld", agents: 3 }]), "3 agents in com.helloworld. To see them, start a gateway with --namespace com.helloworld.")
  assert.equal(hintText([{ namespace: "n", agents: 1 }]), "1 agent in n. To see it, start a gateway with --namespace n.")
  const many = ["a", "b", "c", "d", "e"].map((namespace, number) => ({ namespace, agents: number + 1 }))
  assert.equal(hintText(many), "5 agents in e, 4 agents in d, 3 agents in c and more in 2 other namespaces. To see them, start a gateway with --namespace followed by one of these names.")
  assert.ok(hintText([{ namespace: "x".repeat(1000), agents: 1 }]).length < 300)
})
