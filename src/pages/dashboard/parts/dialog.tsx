/** A modal browser dialog traps the focus, and Escape closes it. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef } from 'preact/hooks';
import { useAction } from '../base/action.js';
import { ErrorNote } from './loaded.jsx';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  /** If true, the page gets the focus on close. */
  readonly isOpenerGone?: { readonly current: boolean };
}

export function Dialog({ title, onClose, children, isOpenerGone }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const opener = useRef<Element | null>(null);
  const id = useId();
  // A layout effect, because keys pressed before the next frame would miss the dialog.
  useLayoutEffect(() => {
    opener.current = document.activeElement;
    dialog.current?.showModal();
  }, []);
  useEffect(
    () => () => {
      // A removed dialog does not restore the focus.
      const back = isOpenerGone?.current === true ? document.getElementById('content') : opener.current;
      if (back instanceof HTMLElement) back.focus({ preventScroll: true });
    },
    [],
  );
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby={id} onClose={onClose}>
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}

interface ConfirmProps extends Omit<DialogProps, 'isOpenerGone'> {
  readonly verb: string;
  readonly isDangerous?: boolean;
  /** Success closes the dialog. */
  readonly act: () => Promise<unknown>;
}

export function Confirm({ title, verb, isDangerous = false, act, onClose, children }: ConfirmProps) {
  const { run, isBusy, error } = useAction(act);
  const cancel = useRef<HTMLButtonElement>(null);
  const isGone = useRef(false);
  // Enter should cancel, because the action cannot be undone.
  useLayoutEffect(() => {
    if (isDangerous) cancel.current?.focus();
  }, []);
  const confirm = async (): Promise<void> => {
    if (!(await run())) return;
    isGone.current = isDangerous;
    onClose();
  };
  return (
    <Dialog title={title} onClose={onClose} isOpenerGone={isGone}>
      {children}
      {error !== null && <ErrorNote error={error} />}
      <div class="row">
        <button type="button" class={isDangerous ? 'danger' : 'primary'} disabled={isBusy} onClick={confirm}>
          {verb}
        </button>
        <button type="button" ref={cancel} onClick={onClose}>
          Cancel
        </button>
      </div>
    </Dialog>
  );
}
