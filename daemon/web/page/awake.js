// A page that nobody looks at holds no connection. Browsers allow six to one host, over all
// tabs, and three forgotten tabs would leave the fourth with none.

const GRACE = 5000; // milliseconds: a glance at another tab interrupts nothing

// visible is done as soon as somebody looks.
export function visible() {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    const look = () => {
      if (document.hidden) return;
      document.removeEventListener('visibilitychange', look);
      resolve();
    };
    document.addEventListener('visibilitychange', look);
  });
}

// whileVisible runs something with a signal that is aborted when the page has been hidden
// for a while, or with the outer signal. It gives back whether it was ended because nobody
// looked; other ends are the caller's to judge.
export async function whileVisible(run, outer) {
  const nap = new AbortController();
  let timer = 0;
  const look = () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(() => nap.abort(), GRACE);
  };
  document.addEventListener('visibilitychange', look);
  try {
    await run(outer ? AbortSignal.any([nap.signal, outer]) : nap.signal);
  } catch (err) {
    if (!nap.signal.aborted) throw err;
  } finally {
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', look);
  }
  return nap.signal.aborted;
}
