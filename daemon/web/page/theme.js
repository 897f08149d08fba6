// Light or dark colours: those of the system, unless the user has chosen.

const KEY = 'mirador.theme';
const system = matchMedia('(prefers-color-scheme: dark)');

function chosen() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // storage is switched off: the choice lasts as long as the page
  }
}

let choice = chosen();

function dark() {
  return choice ? choice === 'dark' : system.matches;
}

function apply() {
  document.documentElement.dataset.theme = dark() ? 'dark' : 'light';
}

// control makes a button switch the colours.
export function control(button) {
  const show = () => {
    apply();
    button.setAttribute('aria-label', dark() ? 'Switch to light colours' : 'Switch to dark colours');
    button.setAttribute('aria-pressed', dark());
  };
  button.addEventListener('click', () => {
    choice = dark() ? 'light' : 'dark';
    try {
      if ((choice === 'dark') === system.matches) localStorage.removeItem(KEY); // follow the system again
      else localStorage.setItem(KEY, choice);
    } catch {
      // see chosen
    }
    show();
  });
  system.addEventListener('change', () => {
    choice = chosen();
    show();
  });
  show();
}

apply();
