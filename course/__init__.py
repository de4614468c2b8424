"""The course: chapters in Markdown, run as Python and published as pages of the site and as notebooks."""
