// The namespace of the gateway, and agents in other namespaces.

import { h, line, plural, setHidden, setText } from "./dom.js"

/** Maximum number of namespaces that are named. */
const maximumNamed = 3
const maximumName = 60

/** Shows the gateway's namespace, and updates it after each reconnect. */
export function showNamespace(element, { access, client, rest }) {
  if (!access.may("read", "info")) return
  const show = async () => {
    if (client.state !== "online") return
    try {
      const { namespace } = (await rest("v1/info")).json
      const name = namespace === "-" ? "- (default)" : line(namespace, maximumName)
      setText(element, `Namespace ${name}`)
      element.title = `The gateway and its clients are in the namespace ${line(namespace)}`
      setHidden(element, false)
    } catch {
      // Tried again after the next reconnect.
    }
  }
  client.addEventListener("statechange", show)
  show()
}

/**
 * Returns a text about agents in other namespaces; undefined if there are none.
 *
 * @param {{ namespace: string, agents: number }[]} [namespaces] of the gateway's status
 */
export function hintText(namespaces = []) {
  if (namespaces.length === 0) return undefined
  const most = [...namespaces].sort((one, other) => other.agents - one.agents)
  const named = most.slice(0, maximumNamed).map(({ namespace, agents }) => `${plural(agents, "agent")} in ${line(namespace, maximumName)}`)
  const rest = namespaces.length - named.length
  if (rest > 0) named.push(`more in ${plural(rest, "other namespace")}`)
  const list = named.length === 1 ? named[0] : `${named.slice(0, -1).join(", ")} and ${named.at(-1)}`
  const namespace = most.length === 1 ? line(most[0].namespace, maximumName) : "followed by one of these names"
  const them = most.length === 1 && most[0].agents === 1 ? "it" : "them"
  return `${list}. To see ${them}, start a gateway with --namespace ${namespace}.`
}

/** Returns an element that shows the hint while there are agents in other namespaces. */
export function namespaceHint({ status }) {
  let hidden = ""
  const text = h("p")
  const hide = () => {
    hidden = text.textContent
    setHidden(element, true)
  }
  const element = h("div", { className: "notice namespace-hint", hidden: true }, text,
    h("button", { className: "button quiet", type: "button", onclick: hide }, "Hide"))
  const show = () => {
    const hint = hintText(status.latest?.otherNamespaces)
    // While the gateway does not answer, the hint stays unchanged.
    if (status.latest === undefined) return
    setText(text, hint ?? "")
    setHidden(element, hint === undefined || hint === hidden)
  }
  status.addEventListener("change", show)
  show()
  return element
}
