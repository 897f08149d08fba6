// A hidden page holds no connection. Browsers allow six connections to one host for all tabs, so three forgotten tabs
// would leave none for the fourth.

const GRACE = 5000; // milliseconds that a page may be hidden without losing its connection

// visible returns a promise that resolves as soon as the page is visible.
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

// whileVisible calls run with a signal that is aborted when the page has been hidden for a while, or with the outer
// signal. It returns whether the page was hidden; errors for other reasons are thrown.
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
