// How messages reach Python: over HTTP from the page of the server, through the kernel from a notebook.

/** The page's own server; the secret comes from the address. */
export function httpTransport() {
  const token = new URLSearchParams(location.search).get("token") ?? "";
  const headers = { "x-token": token };
  const asked = async (path, options) => {
    let response;
    try {
      response = await fetch(path, { method: "POST", ...options });
    } catch {
      return { error: "The server does not answer. Your drawing stays on this page.", offline: true };
    }
    try {
      return await response.json();
    } catch {
      return { error: `The server answered with ${response.status}; look at the terminal it runs in.` };
    }
  };
  return {
    ask: (message) =>
      asked("message", { body: JSON.stringify(message), headers: { ...headers, "content-type": "application/json" } }),
    sendTable: (file) => asked(`table?name=${encodeURIComponent(file.name)}`, { body: file, headers }),
    listen(told, connection) {
      const source = new EventSource(`events?token=${encodeURIComponent(token)}`);
      source.onopen = () => connection(true);
      source.onerror = () => connection(false);
      source.onmessage = ({ data }) => told(JSON.parse(data));
      return () => source.close();
    },
  };
}

/** A notebook's kernel, by anywidget. */
export function widgetTransport(model) {
  const waiting = new Map();
  // A widget that is shown twice hears the answers to both.
  const own = Math.random().toString(36).slice(2);
  let count = 0;
  let told = () => {};
  const received = (content) => {
    if ("id" in content) {
      waiting.get(content.id)?.(content.answer);
      waiting.delete(content.id);
    } else told(content);
  };
  model.on("msg:custom", received);
  const ask = (message, buffers = []) =>
    new Promise((resolve) => {
      const id = `${own}-${(count += 1)}`;
      waiting.set(id, resolve);
      model.send({ id, message }, undefined, buffers);
    });
  return {
    ask: (message) => ask(message),
    sendTable: async (file) => ask({ do: "table", name: file.name }, [await file.arrayBuffer()]),
    listen(listener, connection) {
      told = listener;
      connection(true);
      return () => model.off("msg:custom", received);
    },
  };
}
