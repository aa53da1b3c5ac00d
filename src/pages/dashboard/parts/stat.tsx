import { type ComponentChildren, Fragment } from 'preact';
import { useId, useState } from 'preact/hooks';
import { Button } from './button.jsx';

interface StatProps {
  readonly label: string;
  readonly value: ComponentChildren;
  readonly note?: ComponentChildren;
  readonly children?: ComponentChildren;
  readonly tone?: 'good' | 'alert' | undefined;
}

export function Stat({ label, value, note, children, tone }: StatProps) {
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  const body = (
    <>
      <span class="stat-label">{label}</span>
      <span class={`stat-value ${tone ?? ''}`}>{value}</span>
      {note !== undefined && <span class="stat-note">{note}</span>}
    </>
  );
  if (children === undefined) return <div class="stat">{body}</div>;
  return (
    <div class="stat">
      <Button aria-expanded={isOpen} aria-controls={id} onClick={() => setOpen(!isOpen)}>
        {body}
      </Button>
      <div id={id} class="stat-why" hidden={!isOpen}>
        {children}
      </div>
    </div>
  );
}

export const Stats = ({ children }: { children: ComponentChildren }) => <div class="stats">{children}</div>;

export const Badge = ({
  tone,
  children,
}: {
  tone: 'good' | 'alert' | 'soft';
  children: ComponentChildren;
}) => <span class={`badge ${tone}`}>{children}</span>;

interface FactsProps {
  readonly facts: readonly (readonly [name: ComponentChildren, ...values: ComponentChildren[]])[];
}

export const Facts = ({ facts }: FactsProps) => (
  <dl>
    {facts.map(([name, ...values], i) => (
      <Fragment key={i}>
        <dt>{name}</dt>
        {values.map((value, k) => (
          <dd key={k}>{value}</dd>
        ))}
      </Fragment>
    ))}
  </dl>
);

interface PanelProps {
  readonly title: string;
  readonly about?: ComponentChildren;
  readonly children: ComponentChildren;
}

export const Panel = ({ title, about, children }: PanelProps) => (
  <section class="panel">
    <h2>{title}</h2>
    {about !== undefined && <p class="soft">{about}</p>}
    {children}
  </section>
);
