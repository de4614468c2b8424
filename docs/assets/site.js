// Render formulas: arithmatex writes them between backslashed brackets, in elements of its class.
for (const element of document.querySelectorAll(".arithmatex")) {
  const source = element.textContent.trim();
  katex.render(source.slice(2, -2), element, {
    displayMode: source.startsWith("\\["),
    throwOnError: false, // an error is shown in red, and scripts/check_pages.py finds it
  });
}
