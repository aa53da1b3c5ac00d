import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Button } from '../../parts/button.jsx';

export function OneTimeSecret({ label, secret }: { label: string; secret: string }) {
  const field = useRef<HTMLInputElement>(null);
  const [outcome, setOutcome] = useState('');
  useLayoutEffect(() => field.current?.focus(), []);
  const copy = async (): Promise<void> => {
    field.current?.select();
    try {
      await navigator.clipboard.writeText(secret);
      setOutcome('Copied.');
    } catch {
      // Pages without HTTPS have no clipboard, and users can deny access.
      setOutcome('Selected. Copy it with the keyboard.');
    }
  };
  return (
    <>
      <label class="field">
        {label}
        <span class="secret">
          <input
            ref={field}
            readOnly
            value={secret}
            spellcheck={false}
            onFocus={(event) => event.currentTarget.select()}
          />
          <Button class="primary" onClick={copy}>
            Copy
          </Button>
        </span>
      </label>
      <p role="status" class="soft">
        {outcome}
      </p>
    </>
  );
}
