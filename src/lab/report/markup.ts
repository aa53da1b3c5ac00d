/** Text of HTML and SVG made by functions; every text and attribute is escaped on its way in. */

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** The text as content or attribute value. Control characters, which no page may hold, become U+FFFD. */
export const escapeText = (text: string): string =>
  text
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    .replace(/[\u0000-\u0008\u000B\u000C\u000E-\u001F]/g, '\uFFFD')
    .replace(/[&<>"']/g, (character) => entities[character] ?? character);

type Attributes = Readonly<Record<string, string | number>>;

/** An element around markup; numbers get two decimals, which is a hundredth of a pixel. */
export function tag(name: string, attributes: Attributes, ...content: readonly string[]): string {
  const listed = Object.entries(attributes)
    .map(([key, value]) => ` ${key}="${escapeText(typeof value === 'number' ? shortNumber(value) : value)}"`)
    .join('');
  return `<${name}${listed}>${content.join('')}</${name}>`;
}

const shortNumber = (value: number): string => `${Number(value.toFixed(2))}`;

/** An element around plain text. */
export const textTag = (name: string, attributes: Attributes, text: string): string =>
  tag(name, attributes, escapeText(text));
