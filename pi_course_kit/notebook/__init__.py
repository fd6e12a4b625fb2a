"""What a chapter's notebook shows: the chapter object, its card, the live view, the builder."""
