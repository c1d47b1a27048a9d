// The whole drawing in the address, behind the #: a browser never sends that part to any server.
import { toJson } from "./document.js";

/** Write a drawing as the text behind the #. */
export async function toFragment(doc) {
  const text = new Blob([JSON.stringify(toJson(doc))]);
  const packed = await new Response(text.stream().pipeThrough(new CompressionStream("deflate-raw"))).arrayBuffer();
  const letters = Array.from(new Uint8Array(packed), (byte) => String.fromCharCode(byte)).join("");
  return `g=${btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

/** Read what an address or its fragment holds; null where there is none. Whoever asks lets Python check it. */
export async function fromFragment(address) {
  const found = /(?:^|[#&])g=([A-Za-z0-9_-]+)/.exec(address);
  if (!found) return null;
  try {
    const letters = atob(found[1].replaceAll("-", "+").replaceAll("_", "/"));
    const packed = new Blob([Uint8Array.from(letters, (letter) => letter.charCodeAt(0))]);
    const text = await new Response(packed.stream().pipeThrough(new DecompressionStream("deflate-raw"))).text();
    return JSON.parse(text);
  } catch {
    return null;
  }
}
