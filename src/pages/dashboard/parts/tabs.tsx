import { href } from '../base/route.js';

interface TabsProps {
  readonly name: string;
  readonly page: string;
  /** Titles by what stands in the address. */
  readonly tabs: Readonly<Record<string, string>>;
  readonly current: string;
}

/** Parts of a page, each with an address of its own. */
export const Tabs = ({ name, page, tabs, current }: TabsProps) => (
  <nav class="tabs" aria-label={name}>
    {Object.entries(tabs).map(([id, title]) => (
      <a key={id} class="tab" href={href(page, [id])} aria-current={id === current ? 'page' : undefined}>
        {title}
      </a>
    ))}
  </nav>
);
