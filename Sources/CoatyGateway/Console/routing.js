export const view = { id: "routing", title: "IO routing", mount() {} }
