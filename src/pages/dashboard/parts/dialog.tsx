/** A modal browser dialog traps the focus, and Escape closes it. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef } from 'preact/hooks';
import { useAction } from '../base/action.js';
import { Button } from './button.jsx';
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
      const focusTarget =
        isOpenerGone?.current === true ? document.getElementById('content') : opener.current;
      if (focusTarget instanceof HTMLElement) focusTarget.focus({ preventScroll: true });
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

interface FormDialogProps extends Omit<DialogProps, 'isOpenerGone'> {
  readonly submitLabel: string;
  readonly isDangerous?: boolean;
  readonly isIncomplete?: boolean;
  /** Replaces the form after a submission that keeps the dialog open. */
  readonly result?: ComponentChildren;
  /** Buttons after "Cancel". */
  readonly moreActions?: ComponentChildren;
  /** @returns false to keep the dialog open */
  readonly onSubmit: () => Promise<boolean>;
}

/** The browser checks the fields before it submits. */
export function FormDialog({
  title,
  submitLabel,
  result,
  onSubmit,
  onClose,
  children,
  ...options
}: FormDialogProps) {
  const { run, isBusy, error } = useAction(async () => {
    if (await onSubmit()) onClose();
  });
  const submit = (event: Event): void => {
    event.preventDefault();
    void run();
  };
  if (result) {
    return (
      <Dialog title={title} onClose={onClose}>
        {result}
        <div>
          <Button onClick={onClose}>Done</Button>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="form" onSubmit={submit}>
        {children}
        {error !== null && <ErrorNote error={error} />}
        <div class="row">
          <button
            type="submit"
            class={options.isDangerous ? 'danger' : 'primary'}
            disabled={isBusy || options.isIncomplete}
          >
            {submitLabel}
          </button>
          <Button onClick={onClose}>Cancel</Button>
          {options.moreActions}
        </div>
      </form>
    </Dialog>
  );
}

interface ConfirmDialogProps extends Omit<DialogProps, 'isOpenerGone'> {
  readonly confirmLabel: string;
  readonly isDangerous?: boolean;
  /** Success closes the dialog. */
  readonly onConfirm: () => Promise<unknown>;
}

export function ConfirmDialog({
  title,
  confirmLabel,
  isDangerous = false,
  onConfirm,
  onClose,
  children,
}: ConfirmDialogProps) {
  const { run, isBusy, error } = useAction(onConfirm);
  const cancel = useRef<HTMLButtonElement>(null);
  const isOpenerGone = useRef(false);
  // Enter should cancel, because the action cannot be undone.
  useLayoutEffect(() => {
    if (isDangerous) cancel.current?.focus();
  }, []);
  const confirm = async (): Promise<void> => {
    if (!(await run())) return;
    isOpenerGone.current = isDangerous;
    onClose();
  };
  return (
    <Dialog title={title} onClose={onClose} isOpenerGone={isOpenerGone}>
      {children}
      {error !== null && <ErrorNote error={error} />}
      <div class="row">
        <button type="button" class={isDangerous ? 'danger' : 'primary'} disabled={isBusy} onClick={confirm}>
          {confirmLabel}
        </button>
        <button type="button" ref={cancel} onClick={onClose}>
          Cancel
        </button>
      </div>
    </Dialog>
  );
}
