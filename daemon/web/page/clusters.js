// Joining and leaving. The text of a kubeconfig holds secrets: it goes to the daemon and
// is cleared as soon as the dialog closes.

import { byId, mark, say } from './dom.js';
import { join, leave } from './api.js';

// Names become part of addresses and namespaces.
const NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

// setUp wires the two dialogs and gives back what opens them.
export function setUp({ onchange }) {
  return { join: joinDialog(onchange), leave: leaveDialog(onchange) };
}

function joinDialog(onchange) {
  const dialog = byId('join');
  const form = dialog.querySelector('form');
  const name = byId('join-name');
  const kubeconfig = byId('join-kubeconfig');
  const context = byId('join-context');
  const error = byId('join-error');
  const submit = byId('join-submit');

  const complain = (text, field) => {
    say(error, text);
    error.hidden = text === '';
    for (const f of [name, kubeconfig]) mark(f, 'aria-invalid', f === field ? 'true' : null);
    field?.focus();
  };

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const cluster = name.value.trim();
    if (!NAME.test(cluster)) {
      complain('The name must be lower-case letters, digits and dashes, at most 63, such as eu-west.', name);
      return;
    }
    if (kubeconfig.value.trim() === '') {
      complain('Paste the kubeconfig of the cluster.', kubeconfig);
      return;
    }
    complain('');
    submit.disabled = true;
    say(submit, 'Joining…');
    try {
      await join(cluster, kubeconfig.value, context.value.trim());
      dialog.close();
      onchange(`${cluster} joins the fleet.`);
    } catch (err) {
      complain(err.message);
    } finally {
      submit.disabled = false;
      say(submit, 'Join');
    }
  });
  dialog.addEventListener('close', () => {
    form.reset();
    complain('');
  });
  byId('join-cancel').addEventListener('click', () => dialog.close());
  return () => dialog.showModal();
}

function leaveDialog(onchange) {
  const dialog = byId('leave');
  const error = byId('leave-error');
  const submit = byId('leave-submit');
  let cluster = '';

  dialog.querySelector('form').addEventListener('submit', async (event) => {
    event.preventDefault();
    submit.disabled = true;
    try {
      await leave(cluster);
      dialog.close();
      onchange(`${cluster} has left the fleet.`);
    } catch (err) {
      say(error, err.message);
      error.hidden = false;
    } finally {
      submit.disabled = false;
    }
  });
  byId('leave-cancel').addEventListener('click', () => dialog.close());
  return (name) => {
    cluster = name;
    say(byId('leave-name'), name);
    error.hidden = true;
    dialog.showModal();
    byId('leave-cancel').focus(); // Enter by mistake keeps the cluster
  };
}
