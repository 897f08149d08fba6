// Elements without a framework. Text that came from a cluster goes through
// textContent only, so nothing that a cluster says can become markup.

const SVG = 'http://www.w3.org/2000/svg';

// el makes an element: text is its text, on... are listeners, everything else is an attribute.
export function el(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

// svg is el for drawings.
export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'text') node.textContent = value;
    else if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children);
  return node;
}

// say sets a text if it is another one. Most numbers of a quiet pipeline stay as
// they are from second to second, and then nothing is laid out again.
export function say(node, text) {
  const s = String(text);
  if (node.textContent !== s) node.textContent = s;
}

// mark sets an attribute if it is another one; null takes it away.
export function mark(node, name, value) {
  if (value === null || value === undefined) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) {
    node.setAttribute(name, value);
  }
}

// order makes the children of a parent the given ones, in that order, and moves only
// those that are not where they belong: focus and running animations survive.
export function order(parent, wanted) {
  const kept = new Set(wanted);
  for (const node of [...parent.children]) if (!kept.has(node)) node.remove();
  let at = parent.firstChild;
  for (const node of wanted) {
    if (node === at) {
      at = at.nextSibling;
    } else {
      parent.insertBefore(node, at);
    }
  }
}

// byId finds what index.html promises to have.
export function byId(id) {
  return document.getElementById(id);
}

// soon runs a function once before the next frame, however often it is asked for. A
// page in the background gets no frames, so a slow clock runs beside.
export function soon(run) {
  let waiting = false;
  let frame = 0;
  let timer = 0;
  const now = () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    waiting = false;
    run();
  };
  return () => {
    if (waiting) return;
    waiting = true;
    frame = requestAnimationFrame(now);
    timer = setTimeout(now, 1000);
  };
}
