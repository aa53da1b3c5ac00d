/** What has to be decided before anything else, in the browser's own dialog: it keeps the focus, and Escape closes it. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { useAction } from '../base/action.js';
import { ErrorNote } from './loaded.jsx';

interface DialogProps {
  readonly title: string;
  /** Closed by Escape or a button. */
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** Open as long as it is there. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby={id} onClose={onClose}>
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}

interface ConfirmProps extends DialogProps {
  /** The verb of what is done, on the button. */
  readonly verb: string;
  /** It cannot be undone. */
  readonly isDangerous?: boolean;
  /** Closes when it is done; what it throws is shown. */
  readonly act: () => Promise<unknown>;
}

/** Asks whether to do something. Its text says what happens. */
export function Confirm({ title, verb, isDangerous = false, act, onClose, children }: ConfirmProps) {
  const { run, isBusy, error } = useAction(act);
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      {error !== null && <ErrorNote error={error} />}
      <div class="row">
        <button
          type="button"
          class={isDangerous ? 'danger' : 'primary'}
          disabled={isBusy}
          onClick={async () => (await run()) && onClose()}
        >
          {verb}
        </button>
        {/* What cannot be undone is not what Enter does first. */}
        {/* biome-ignore lint/a11y/noAutofocus: a dialog takes the focus in any case */}
        <button type="button" autoFocus={isDangerous} onClick={onClose}>
          Cancel
        </button>
      </div>
    </Dialog>
  );
}
