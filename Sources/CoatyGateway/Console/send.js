export const view = { id: "send", title: "Send", mount() {} }
