export function AboutDemo() {
  return <h1>About the demo</h1>;
}
